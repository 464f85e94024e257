# The mock in an image: no GPU, no torch, about ten seconds to build where the wheels are at hand.
#
# BASE_IMAGE may be any image with Python 3.11 or later and its venv module; every stage starts from it, because a virtual
# environment refers to the interpreter it was made with by its path.
ARG BASE_IMAGE=python:3.13-slim

# pip stays in an environment of its own, so that the one which is copied into the image holds what the mock needs and no more.
FROM ${BASE_IMAGE} AS build
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/mock
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY mock_vllm mock_vllm
COPY conformance conformance
COPY vime_sync vime_sync
RUN /opt/build/bin/pip --python /opt/mock/bin/python install --no-cache-dir ".[mock]"

FROM build AS model
RUN /opt/mock/bin/python -m conformance.tiny_model write /models/tiny

# No RUN in this stage: nothing that a build mounts or leaves behind can get into the image.
FROM ${BASE_IMAGE}
COPY --from=build /opt/mock /opt/mock
COPY --from=model /models /models
ENV PATH=/opt/mock/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that an orchestrator can see without reading /etc/passwd that it is not root.
USER 10001:10001
WORKDIR /models
EXPOSE 8000
# The image has no curl. MOCK_PORT is for those who serve on another port inside the container, as host networking may need.
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s --retries=3 CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ.get('MOCK_PORT', '8000') + '/health', timeout=2).close()"]
ENTRYPOINT ["mock-vllm"]
CMD ["serve", "/models/tiny", "--host", "0.0.0.0", "--port", "8000"]
