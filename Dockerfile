# The app in a container: not root, its file system read-only, its data in the volume /data.
#   docker build -t l2m .                                   on the CPU
#   docker build -t l2m:cuda --build-arg ACCELERATOR=cu130 .  on NVIDIA GPUs (run it with --gpus all)
#   docker run --read-only --tmpfs /tmp -v l2m-data:/data -p 127.0.0.1:8501:8501 l2m

FROM python:3.11.13-slim-bookworm AS build
# Which build of PyTorch: cpu, or cu130, the CUDA release whose packages have their exact versions in constraints.txt.
ARG ACCELERATOR=cpu
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_CONSTRAINT=/build/constraints.txt
WORKDIR /build
COPY constraints.txt ./
# By itself, and first: it is the largest part and changes least, so later builds find it in the cache.
RUN python -m venv /opt/l2m \
    && /opt/l2m/bin/pip install --extra-index-url "https://download.pytorch.org/whl/${ACCELERATOR}" torch
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY l2m_core l2m_core
COPY train train
COPY pretrained pretrained
RUN /opt/l2m/bin/pip install ".[app,train]"

FROM python:3.11.13-slim-bookworm
RUN groupadd --gid 10001 l2m \
    && useradd --uid 10001 --gid l2m --no-create-home --home-dir /tmp --shell /usr/sbin/nologin l2m \
    && install --directory --owner l2m --group l2m --mode 0700 /data
COPY --from=build /opt/l2m /opt/l2m
# Nothing is written but to /data and, for passing files, to /tmp.
ENV PATH=/opt/l2m/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 L2M_DATA_DIR=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8501
# The model is loaded before the server answers, which takes a while on a busy machine.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
ENTRYPOINT ["l2m"]
# Inside a container, 0.0.0.0 is what the published port reaches; publish it on the loopback interface.
CMD ["app", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
