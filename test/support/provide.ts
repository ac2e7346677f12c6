/** Makes sure that what the tests run for real is there: redis-server and Chromium. Takes them from PATH, else from Debian's packages. */
import { spawnSync } from 'node:child_process'

const needed = [
  { program: 'redis-server', packages: ['redis-server'] },
  { program: 'chromium', packages: ['chromium', 'fonts-dejavu-core'] }
]

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
  // Debian's package starts a Redis of its own; the tests start theirs.
  run('sh', '-c', 'apt-get update -qq')
  run('apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages)
  const still = missing.filter(({ program }) => !there(program))
  if (still.length > 0) {
    process.stderr.write(`Could not install ${still.map(({ program }) => program).join(' and ')}. Install ${still.flatMap(part => part.packages).join(' ')} and run the tests again.\n`)
    process.exit(1)
  }
}
