#!/usr/bin/env bash
# small: 3 pools, 9 replicas (spares included)
# Written by epd-opt 0.1.0 with the options of SGLang 0.5.23.
# Not expressed here, or left to do by hand:
# - the plan counts on engine vllm; these are options of SGLang
# - --mem-fraction-static counts weights and KV cache only, the planned share activations too: lower it if short
# - python -m sglang_router.launch_router --pd-disaggregation in front pairs prefill with decode by its own rule
# - --encoder-only and --language-only work for the model families that SGLang lists, no others
#
# bash FILE list                             pools, replicas (spares included) and devices
# bash FILE start POOL FIRST_DEVICE PORT     one replica of pool number POOL on this host: its devices count from
#                                            FIRST_DEVICE, its ports from PORT; the last is the engine's
# MODEL and HOST (the address of this host for its peers) may be set in the environment.
set -euo pipefail
[ -n "${MODEL:-}" ] || MODEL=Qwen/Qwen2.5-VL-7B-Instruct
HOST=${HOST:-127.0.0.1}

list() {
  cat <<'END'
pool	replicas	spares	devices_per_replica	ports_per_replica	hosts_per_replica	sku	name
1	3	1	1	1	1	A100-80-SXM	decode-A100-80-SXM-tp1
2	3	1	1	2	1	L4	encoder_pool-L4-tp1
3	3	1	1	1	1	A100-80-SXM	prefill-A100-80-SXM-tp1
END
}

pool_1() {  # decode-A100-80-SXM-tp1: decode
  local port=$PORT
  CUDA_VISIBLE_DEVICES="$(seq -s, "$FIRST" "$((FIRST + 0))")" \
    python -m sglang.launch_server --model-path "$MODEL" \
    --host 0.0.0.0 --port "$port" \
    --tp-size 1 \
    --max-running-requests 128 \
    --chunked-prefill-size 8192 \
    --mem-fraction-static 0.9 \
    --context-length 4096 \
    --kv-cache-dtype bf16 \
    --disaggregation-mode decode
}

pool_2() {  # encoder_pool-L4-tp1: encode
  local port=$PORT
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  for ((device = FIRST; device < FIRST + 1; device++)); do
    for ((process = 0; process < 2; process++)); do
      CUDA_VISIBLE_DEVICES="$device" \
        python -m sglang.launch_server --model-path "$MODEL" \
        --host 0.0.0.0 --port "$port" \
        --encoder-only \
        --mem-fraction-static 0.45 &
      port=$((port + 1))
    done
  done
  wait
}

pool_3() {  # prefill-A100-80-SXM-tp1: prefill
  local port=$PORT
  local encoders=()
  read -ra encoders <<<"${ENCODER_URLS:?addresses of the encoders, with blanks between them}"
  CUDA_VISIBLE_DEVICES="$(seq -s, "$FIRST" "$((FIRST + 0))")" \
    python -m sglang.launch_server --model-path "$MODEL" \
    --host 0.0.0.0 --port "$port" \
    --tp-size 1 \
    --chunked-prefill-size 8192 \
    --mem-fraction-static 0.9 \
    --context-length 4096 \
    --kv-cache-dtype bf16 \
    --disaggregation-mode prefill \
    --language-only --encoder-urls "${encoders[@]}"
}

case "${1:-}" in
  list) list ;;
  start)
    FIRST=${3:?first device} PORT=${4:?first port}
    case "${2:?pool}" in
      1|2|3) "pool_$2" ;;
      *) echo "no pool $2; bash $0 list" >&2; exit 2 ;;
    esac ;;
  *) echo "usage: bash $0 list | start POOL FIRST_DEVICE PORT" >&2; exit 2 ;;
esac
