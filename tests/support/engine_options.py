"""Options and fields that the releases named in the exporters know: facts to check exports against."""

from __future__ import annotations

VLLM = {
    *("--host", "--port", "--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"),
    *("--enable-expert-parallel", "--max-num-seqs", "--max-num-batched-tokens", "--gpu-memory-utilization"),
    *("--max-model-len", "--quantization", "--kv-cache-dtype", "--mm-encoder-only", "--language-model-only"),
    *("--ec-transfer-config", "--kv-transfer-config", "--nnodes", "--node-rank", "--master-addr", "--headless"),
    "--enable-mm-embeds",
}
SGLANG = {
    *("--model-path", "--host", "--port", "--tp-size", "--pp-size", "--attn-dp-size", "--ep-size"),
    *("--max-running-requests", "--chunked-prefill-size", "--mem-fraction-static", "--context-length", "--quantization"),
    *("--kv-cache-dtype", "--encoder-only", "--language-only", "--encoder-urls", "--disaggregation-mode"),
    *("--disaggregation-transfer-backend", "--nnodes", "--node-rank", "--dist-init-addr"),
}
DYNAMO_VLLM = {"--model", "--disaggregation-mode", "--enable-multimodal", "--route-to-encoder"}
DYNAMO_SGLANG = {"--enable-multimodal", "--dedicated-mm-encoder"}
SIDECAR = {"--port", "--vllm-port", "--connector", "--kv-connector", "--ec-connector", "--secure-proxy"}

EC_CONNECTORS = {"ECExampleConnector", "ECCPUConnector", "ECMooncakeConnector"}
EC_ROLES = {"ec_producer", "ec_consumer", "ec_both"}
KV_CONNECTORS = {"NixlConnector", "MooncakeConnector", "MultiConnector"}
KV_ROLES = {"kv_producer", "kv_consumer", "kv_both"}
VLLM_KV_CACHE = {"auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "nvfp4"}
SGLANG_KV_CACHE = {"auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16"}

COMPONENT_TYPES = {"frontend", "worker", "prefill", "decode", "planner", "epp"}
COMPONENT_FIELDS = {"name", "type", "replicas", "multinode", "podTemplate"}
GRAPH_FIELDS = {"backendFramework", "components"}
COMPONENT_NAME = r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?"

CHART_FIELDS = {"multinode", "modelArtifacts", "routing", "decode", "prefill", "extraObjects"}
CHART_ROLE_FIELDS = {
    *("create", "replicas", "podAnnotations", "nodeSelector", "accelerator", "parallelism", "containers", "volumes"),
}
CHART_ACCELERATORS = {"nvidia", "intel-i915", "intel-xe", "intel-gaudi", "amd", "google", "cpu", "rebellions-atom"}
