"""What goes wrong with cards."""

from __future__ import annotations


class CardError(ValueError):
    """A card, or a mapping in a card's form, does not make sense.

    Attributes
    ----------
    path : str
        Where in the card: its name or file, then the keys down to the value ("my-card: memory.capacity_gb").
    message : str
        What was found and what was expected.
    key : str
        Of the mapping at the path, where the complaint is about a key that does not belong there.
    """

    def __init__(self, path: str, message: str, key: str = "") -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message
        self.key = key

    def __reduce__(self) -> tuple[type[CardError], tuple[str, str, str]]:
        return type(self), (self.path, self.message, self.key)


class UnknownCard(LookupError):
    """No card has this name or alias.

    Attributes
    ----------
    name, kind : str
        What was asked for, and among which cards ("device", "model", "engine", "coefficients").
    nearest : list of str
        Names that look alike, best first; may be empty.
    """

    def __init__(self, name: str, kind: str, nearest: list[str]) -> None:
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(f"no {kind} card is called {name!r}{hint}")
        self.name = name
        self.kind = kind
        self.nearest = nearest

    def __reduce__(self) -> tuple[type[UnknownCard], tuple[str, str, list[str]]]:
        return type(self), (self.name, self.kind, self.nearest)
