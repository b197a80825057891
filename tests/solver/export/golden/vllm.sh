#!/usr/bin/env bash
# small: 3 pools, 9 replicas (spares included)
# Written by epd-opt 0.1.0 with the options of vLLM 0.33.0.
# Not expressed here, or left to do by hand:
# - a proxy in front must send images to the encoders and pass their ec_transfer_params on to the engines, as the router of llm-d does; it spreads them by its own rule
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
    VLLM_NIXL_SIDE_CHANNEL_HOST="$HOST" \
    VLLM_NIXL_SIDE_CHANNEL_PORT="$((port + 20000))" \
    vllm serve "$MODEL" \
    --host 0.0.0.0 --port "$port" \
    --tensor-parallel-size 1 \
    --max-num-seqs 128 \
    --max-num-batched-tokens 8192 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 4096 \
    --kv-cache-dtype bfloat16 \
    --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_consumer"}'
}

pool_2() {  # encoder_pool-L4-tp1: encode
  local port=$PORT
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  for ((device = FIRST; device < FIRST + 1; device++)); do
    for ((process = 0; process < 2; process++)); do
      CUDA_VISIBLE_DEVICES="$device" \
        VLLM_USE_V2_MODEL_RUNNER="1" \
        VLLM_EC_SIDE_CHANNEL_HOST="$HOST" \
        VLLM_EC_SIDE_CHANNEL_PORT="$((port + 10000))" \
        vllm serve "$MODEL" \
        --host 0.0.0.0 --port "$port" \
        --mm-encoder-only \
        --gpu-memory-utilization 0.45 \
        --ec-transfer-config '{"ec_connector": "ECCPUConnector", "ec_role": "ec_producer", "ec_connector_extra_config": {"ec_cpu_bytes": 4294967296, "ec_enable_nixl": true}}' &
      port=$((port + 1))
    done
  done
  wait
}

pool_3() {  # prefill-A100-80-SXM-tp1: prefill
  local port=$PORT
  CUDA_VISIBLE_DEVICES="$(seq -s, "$FIRST" "$((FIRST + 0))")" \
    VLLM_USE_V2_MODEL_RUNNER="1" \
    VLLM_NIXL_SIDE_CHANNEL_HOST="$HOST" \
    VLLM_NIXL_SIDE_CHANNEL_PORT="$((port + 20000))" \
    vllm serve "$MODEL" \
    --host 0.0.0.0 --port "$port" \
    --tensor-parallel-size 1 \
    --max-num-batched-tokens 8192 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 4096 \
    --kv-cache-dtype bfloat16 \
    --ec-transfer-config '{"ec_connector": "ECCPUConnector", "ec_role": "ec_consumer", "ec_connector_extra_config": {"ec_cpu_bytes": 4294967296, "ec_enable_nixl": true}}' \
    --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_producer"}'
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
