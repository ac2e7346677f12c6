/** Makes sure that what the tests run for real is there: redis-server and Chromium. Takes them from PATH, else from Debian's packages. */
import { spawnSync } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

const needed = [
  { program: 'redis-server', packages: ['redis-server'] },
  { program: 'chromium', packages: ['chromium', 'fonts-dejavu-core'] }
]

/** Of apt itself: for the lock of another installation, and for its mirrors. */
const patience = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=3']
const tried = 4

const there = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0

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
    return run('apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...patience, ...packages)
  }
  // A mirror that does not answer, or another installation under way: both pass.
  for (let tries = 1; there('apt-get') && !install() && tries < tried; tries++) {
    process.stderr.write('That failed; trying again …\n')
    await wait(5000 * tries)
  }
  const still = missing.filter(({ program }) => !there(program))
  if (still.length > 0) {
    process.stderr.write(`Could not install ${still.map(({ program }) => program).join(' and ')}. Install ${still.flatMap(part => part.packages).join(' ')} and run the tests again.\n`)
    process.exit(1)
  }
}
