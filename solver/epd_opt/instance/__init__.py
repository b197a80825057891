"""The instance: what to serve, on what it may run, at which prices and under which limits.

Field names are those of the file and carry their units; nothing is converted here.
"""

from epd_opt.instance.cost import Cost
from epd_opt.instance.currency import Amount, ExchangeRate
from epd_opt.instance.device import Cut, Degrees, DeviceEntry
from epd_opt.instance.engine import Engine, EngineName, EngineSettings, Speculative
from epd_opt.instance.identity import instance_sha256
from epd_opt.instance.limits import Limits, Redundancy
from epd_opt.instance.media import Images, Video
from epd_opt.instance.network import Network
from epd_opt.instance.objective import CostOverRange, Objective, SolverSettings
from epd_opt.instance.performance import Performance, ProfileFile, Silicon
from epd_opt.instance.placements import Placement
from epd_opt.instance.precision import Format, Precision, StorageFormat
from epd_opt.instance.price import PRICE_AMOUNTS, Price, Reserved, Spot
from epd_opt.instance.quantity import Lognormal, Quantity, Values
from epd_opt.instance.scenario import Robust, Scenario
from epd_opt.instance.schema import SCHEMA, instance_json_schema
from epd_opt.instance.slo import Slo
from epd_opt.instance.stages import STAGES, Stage, Stages
from epd_opt.instance.whole import Instance
from epd_opt.instance.worker import Candidates, Rates, Worker
from epd_opt.instance.workload import HOURS, Profile, RequestClass, Workload

__all__ = [
    "HOURS",
    "PRICE_AMOUNTS",
    "SCHEMA",
    "STAGES",
    "Amount",
    "Candidates",
    "Cost",
    "CostOverRange",
    "Cut",
    "Degrees",
    "DeviceEntry",
    "Engine",
    "EngineName",
    "EngineSettings",
    "ExchangeRate",
    "Format",
    "Images",
    "Instance",
    "Limits",
    "Lognormal",
    "Network",
    "Objective",
    "Performance",
    "Placement",
    "Precision",
    "Price",
    "Profile",
    "ProfileFile",
    "Quantity",
    "Rates",
    "Redundancy",
    "RequestClass",
    "Reserved",
    "Robust",
    "Scenario",
    "Silicon",
    "Slo",
    "SolverSettings",
    "Speculative",
    "Spot",
    "Stage",
    "Stages",
    "StorageFormat",
    "Values",
    "Video",
    "Worker",
    "Workload",
    "instance_json_schema",
    "instance_sha256",
]
