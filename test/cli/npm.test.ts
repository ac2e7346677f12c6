/** A signal to npm, which passes it on to its shell only, ends the gateway. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'

import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { configFolder } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const environment = {
  ...process.env,
  PATH: `${resolve('node_modules/node/bin')}:${process.env['PATH'] ?? ''}`,
  // Not below the folder of the test, which goes with it.
  NODE_COMPILE_CACHE: resolve('node_modules/.cache/compiled'),
  // No process of this test is npm's script.
  npm_lifecycle_script: undefined
}

async function isTaken(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const taken = await once(socket, 'connect').then(
    () => true,
    () => false
  )
  socket.destroy()
  return taken
}

/** A gateway on free ports, and what it prints. */
async function started(t: Test, command: (folder: string) => string[], cwd: string) {
  const release = Promise.withResolvers<void>()
  const backend = await testUpstream(t.after, async (_request, response) => {
    await release.promise
    response.end('{"done":true}')
  })
  const [port = 0, opsPort = 0] = await freePorts(2)
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}` },
      ops: { listen: `127.0.0.1:${opsPort}` },
      drain: { notice: '0ms', grace: '20s' }
    },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { slow: { path: '/api/slow', upstream: 'b', access: 'public' } }
    }
  })
  const [file = '', ...words] = command(folder)
  const child = spawn(file, words, { cwd, env: environment, detached: true })
  t.teardown(() => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of the group have ended.
    }
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
    })
  }
  await until(`"${file}" listens`, () => printed.includes('listening on'))
  const inFlight = fetch(`http://127.0.0.1:${port}/api/slow`, { headers: { connection: 'close' } })
  await until('the back-end is asked', () => backend.begun() === 1)
  return {
    child,
    ports: [port, opsPort],
    inFlight,
    release: release.resolve,
    printed: () => printed
  }
}

/** A folder whose command `console-gateway` is that of this checkout. */
function installed(t: Test): string {
  const place = t.testdir({})
  const bin = join(place, 'node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(resolve('bin/console-gateway.js'), join(bin, 'console-gateway'))
  writeFileSync(join(place, 'package.json'), '{"private": true}')
  return place
}

const npx = (folder: string) => ['npx', 'console-gateway', 'start', '--config', folder]
const npmStart = (folder: string) => ['npm', 'start', '--', '--config', folder]

for (const [title, command, signal] of [
  ['SIGTERM to npx', npx, 'SIGTERM'],
  ['SIGTERM to npm start', npmStart, 'SIGTERM'],
  ['SIGINT to all of them, as a terminal sends it,', npx, 'SIGINT']
] as const) {
  t.test(`case U10: ${title} drains the gateway and frees its ports`, async t => {
    const cwd = command === npx ? installed(t) : process.cwd()
    const { child, ports, inFlight, release, printed } = await started(t, command, cwd)
    const { pid = 0 } = child
    process.kill(signal === 'SIGINT' ? -pid : pid, signal)
    await until('the gateway drains', () => printed().includes('stopping: not ready'))
    release()
    t.same(await (await inFlight).json(), { done: true }, 'the request in flight is answered')
    await until('both ports are free', async () => {
      const taken = await Promise.all(ports.map(isTaken))
      return !taken.includes(true)
    })
    await until('it says that it has stopped', () => printed().includes('"msg":"stopped"'))
    t.notMatch(printed(), /a second SIG|still running/)
  })
}

t.test('case U10: a gateway that a shell leaves behind goes on', async t => {
  // An npm script that ends by itself, and a shell in a terminal that npm has opened.
  for (const script of ['nohup console-gateway start &', 'bash']) {
    const { child, ports, inFlight, release, printed } = await started(
      t,
      folder => [
        'sh',
        '-c',
        `npm_lifecycle_script='${script}' nohup node ${resolve('bin/console-gateway.js')} start ` +
          `--config ${folder} & ${script === 'bash' ? 'read -r _' : ''}`
      ],
      process.cwd()
    )
    child.stdin.end()
    if (child.exitCode === null) await once(child, 'exit')
    release()
    t.same(await (await inFlight).json(), { done: true })
    // Longer than it would take to notice that its parent has ended.
    await wait(2500)
    t.equal((await fetch(`http://127.0.0.1:${ports[0]}/api/slow`)).status, 200)
    t.notMatch(printed(), /stopping/)
  }
})
