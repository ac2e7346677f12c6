/**
 * Makes sure that what the tests need is there: tap with the plugins that .taprc names, redis-server, Chromium,
 * the proxies of docs/tls.md, and Prometheus with promtool.
 * The programs are taken from PATH, else from Debian's packages.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { t } from 'tap'
import { parse } from 'yaml'

/** tap is installed with its default plugins; a first `tap run` with others would still start the tests with those. */
function isTapBuilt(): boolean {
  const { plugin } = parse(readFileSync('.taprc', 'utf8')) as { plugin: readonly string[] }
  const built = new Set(t.pluginSignature.split('\n'))
  return plugin.every(name => (name.startsWith('!') ? !built.has(name.slice(1)) : built.has(name)))
}

if (!isTapBuilt()) {
  process.stderr.write('Building tap with the plugins of .taprc …\n')
  const { status } = spawnSync('tap', ['build'], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) process.exit(status ?? 1)
}

const needed = [
  { program: 'redis-server', packages: ['redis-server'] },
  { program: 'nginx', packages: ['nginx'] },
  { program: 'caddy', packages: ['caddy'] },
  { program: 'haproxy', packages: ['haproxy'] },
  { program: 'chromium', packages: ['chromium', 'fonts-dejavu-core'] }
]

/** Of apt itself: for the lock of another installation, and for its mirrors. */
const patience = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=3']
const tried = 4

/** Servers are in /usr/sbin, which is not in everyone's PATH. */
const there = (program: string) =>
  spawnSync('sh', ['-c', `PATH="$PATH:/usr/sbin"; command -v ${program}`]).status === 0

/** Debian's package would start a server and brings a web page's libraries: only its programs are taken. */
const unpacked = { package: 'prometheus', programs: ['prometheus', 'promtool'] }
const unpackedTo = '/usr/local/bin'

const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']

function run(words: readonly string[], cwd = '.'): boolean {
  const [command = '', ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', ...words]
  return spawnSync(command, rest, { cwd, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
}

function install(packages: readonly string[]): boolean {
  // What is listed already may be enough, so that this may fail.
  run(['apt-get', 'update', '-qq', ...patience])
  const options = ['-y', '-qq', '--no-install-recommends', ...patience]
  return run(['apt-get', 'install', ...options, ...packages])
}

function unpack(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'unpack-'))
  const script = `apt-get download -qq -o APT::Sandbox::User=root ${unpacked.package} && dpkg-deb -x ${unpacked.package}_*.deb .`
  const files = unpacked.programs.map(program => join(folder, 'usr/bin', program))
  try {
    run(['apt-get', 'update', '-qq', ...patience])
    const isUnpacked = run(['sh', '-c', script], folder)
    return isUnpacked && run(['install', '-m', '755', ...files, unpackedTo])
  } finally {
    run(['rm', '-rf', folder])
  }
}

/** A mirror that does not answer, or another installation under way: both pass. */
async function withPatience(what: string, attempt: () => boolean): Promise<void> {
  process.stderr.write(`The tests need ${what}: taking it from Debian's packages …\n`)
  for (let tries = 1; there('apt-get') && !attempt() && tries < tried; tries++) {
    process.stderr.write('That failed; trying again …\n')
    await wait(5000 * tries)
  }
}

const missing = needed.filter(({ program }) => !there(program))
if (missing.length > 0) {
  const names = missing.map(({ program }) => program).join(' and ')
  await withPatience(names, () => install(missing.flatMap(part => part.packages)))
}
if (!unpacked.programs.every(there)) {
  await withPatience(unpacked.programs.join(' and '), unpack)
}
const still = [...needed.map(({ program }) => program), ...unpacked.programs].filter(
  program => !there(program)
)
if (still.length > 0) {
  const packages = [
    ...needed.filter(({ program }) => still.includes(program)).flatMap(part => part.packages),
    ...(unpacked.programs.some(program => still.includes(program)) ? [unpacked.package] : [])
  ]
  process.stderr.write(
    `Could not install ${still.join(' and ')}. Install ${packages.join(' ')} and run the tests again.\n`
  )
  process.exit(1)
}
