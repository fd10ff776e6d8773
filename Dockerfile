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
COPY hashes hashes
# By themselves, and first: they are the largest part and change least, so later builds find them in the cache.
# With hashes where they are known for this platform and accelerator; elsewhere by exact versions alone, which the build says.
RUN python -m venv /opt/l2m && python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes --no-deps -r hashes/build.txt \
    && packages="hashes/${ACCELERATOR}-$(uname -m).txt" \
    && if [ -f "$packages" ]; then \
        /opt/l2m/bin/pip install --require-hashes --no-deps \
            --extra-index-url "https://download.pytorch.org/whl/${ACCELERATOR}" -r "$packages"; \
    else \
        echo "WARNING: no $packages: versions of packages are exact, but their files are not checked" \
        && /opt/l2m/bin/pip install --extra-index-url "https://download.pytorch.org/whl/${ACCELERATOR}" torch; \
    fi
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY l2m_core l2m_core
COPY train train
COPY pretrained pretrained
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /build/wheel . \
    && wheel="$(echo /build/wheel/*.whl)" \
    && /opt/l2m/bin/pip install "${wheel}[app,train]"

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
# Healthy is who gets an answer: the database is there, and the model loaded, which takes a while on a busy machine.
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/readyz', timeout=9)"]
ENTRYPOINT ["l2m"]
# Inside a container, 0.0.0.0 is what the published port reaches; publish it on the loopback interface.
CMD ["app", "--address", "0.0.0.0", "--port", "8501", "--no-browser"]
