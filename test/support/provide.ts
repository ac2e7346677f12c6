/**
 * Makes sure that what the tests need is there: tap with the plugins that .taprc names, redis-server, Chromium
 * and the proxies of docs/tls.md.
 * The programs are taken from PATH, else from Debian's packages.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
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

const missing = needed.filter(({ program }) => !there(program))
if (missing.length > 0) {
  const names = missing.map(({ program }) => program).join(' and ')
  const packages = missing.flatMap(part => part.packages)
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  process.stderr.write(`The tests need ${names}: installing Debian's ${packages.join(', ')} …\n`)
  const run = (...words: string[]) => {
    const [command = '', ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', ...words]
    return spawnSync(command, rest, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
  }
  const install = () => {
    // What is listed already may be enough, so that this may fail.
    run('apt-get', 'update', '-qq', ...patience)
    return run(
      'apt-get',
      'install',
      '-y',
      '-qq',
      '--no-install-recommends',
      ...patience,
      ...packages
    )
  }
  // A mirror that does not answer, or another installation under way: both pass.
  for (let tries = 1; there('apt-get') && !install() && tries < tried; tries++) {
    process.stderr.write('That failed; trying again …\n')
    await wait(5000 * tries)
  }
  const still = missing.filter(({ program }) => !there(program))
  if (still.length > 0) {
    process.stderr.write(
      `Could not install ${still.map(({ program }) => program).join(' and ')}. Install ${still.flatMap(part => part.packages).join(' ')} and run the tests again.\n`
    )
    process.exit(1)
  }
}
