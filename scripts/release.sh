#!/usr/bin/env bash
# Makes a release in ./release: the npm package, the Helm chart, the software bill of materials and their checksums.
#   scripts/release.sh 0.3.0            all files; publishes nothing
#   IMAGE=registry/name scripts/release.sh 0.3.0   also builds the image for amd64 and arm64, and pushes it
# Needs Node 20 or newer, npm and helm; for the image docker with buildx, and QEMU for the other machine. Tag and publish what it made:
#   git tag -s v0.3.0 && git push --tags && npm publish release/console-gateway-0.3.0.tgz
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: scripts/release.sh VERSION}
said() { echo "release: $*" >&2; exit 1; }

[ -z "$(git status --porcelain)" ] || said 'the checkout has changes that are not committed'
[ "$(npm pkg get version)" = "\"$version\"" ] || said "package.json has another version: npm version --no-git-tag-version $version"
grep -q "^## $version, 20" CHANGELOG.md || said "CHANGELOG.md has no section \"## $version, DATE\""
grep -q "^version: $version$" deploy/helm/console-gateway/Chart.yaml || said 'the chart has another version'

npm ci --no-audit --no-fund
npm run -s check
npm test
rm -rf release
mkdir release
# Builds the bundle and the schema of the chart's values before.
npm pack --silent --pack-destination release
npm sbom --sbom-format cyclonedx --omit dev > "release/console-gateway-$version.sbom.json"
# In a folder of its own: it has the name of the npm package.
helm package deploy/helm/console-gateway --destination release/helm
(cd release && sha256sum -- *.* helm/* > SHA256SUMS)

if [ -n "${IMAGE:-}" ]; then
  docker buildx build --platform linux/amd64,linux/arm64 --sbom true --provenance true --push \
    --build-arg VERSION="$version" --build-arg REVISION="$(git rev-parse HEAD)" -t "$IMAGE:$version" .
fi
ls -l release release/helm
