/** A primary, its replicas and three Sentinels that watch them: real processes, which call nobody down unless a test bids them to. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Authority } from './authority.ts'
import { redisCli } from './redis-cli.ts'
import { until } from './until.ts'
import { freePort, freePorts } from './ports.ts'
import { flags, testRedis, type TestRedis } from './redis.ts'

export interface TestSentinel {
  /** HOST:PORT of each Sentinel. */
  readonly sentinels: string[]
  readonly name: string
  /** The primary, then its replicas. */
  readonly servers: readonly [TestRedis, TestRedis, ...TestRedis[]]
  /** Where the Sentinels say that the primary is. */
  readonly primaryPort: () => Promise<number>
  /** Resolves once the two are primary and replica again, in step, and the Sentinels have seen it. */
  readonly settled: () => Promise<void>
  /** Has a Sentinel make the replica the primary. */
  readonly failover: (asked?: number) => Promise<unknown>
  /** How long the primary may be silent until the Sentinels call it down. Patient at first: a busy machine is no fault. */
  readonly downAfter: (ms: number) => Promise<void>
}

export const patientMs = 120_000

/**
 * @param extra further arguments for all servers
 * @param count how many replicas there are
 * @param tls with it clients, servers and Sentinels speak TLS to each other; the ports of `servers`
 * and `primaryPort` are those without
 */
export async function testSentinel(
  cleanUp: (undo: () => unknown) => void,
  extra: readonly string[] = [],
  count = 1,
  tls?: Authority
): Promise<TestSentinel> {
  const name = 'mymaster'
  const tlsPorts = tls === undefined ? [] : await freePorts(count + 1)
  const start = async (n: number, more: readonly string[]) => {
    const own = flags({ 'repl-diskless-sync-delay': 0, ...securedBy(tls, tlsPorts[n]) })
    return await testRedis(cleanUp, [...own, ...more, ...extra])
  }
  const primary = await start(0, [])
  const followed = tlsPorts[0] ?? primary.port
  const follow = ['--replicaof', `127.0.0.1 ${followed}`]
  const replica = await start(1, follow)
  const others = await Promise.all(
    Array.from({ length: count - 1 }, async (_, n) => await start(n + 2, follow))
  )
  for (const { port } of [replica, ...others]) {
    await until('the replica is in step', async () =>
      (await redisCli(port, 'INFO', 'replication')).includes('master_link_status:up')
    )
  }
  const sentinels = await Promise.all(
    [1, 2, 3].map(() => startSentinel(cleanUp, { name, primary: followed, tls }))
  )
  const ports = sentinels.map(({ port }) => port)
  const first = ports[0] ?? 0
  const settled = async () => {
    await until('the Sentinels know each other and the replica', async () => {
      const seen = await Promise.all(ports.map(port => redisCli(port, 'SENTINEL', 'MASTER', name)))
      const fields = seen.map(text => {
        const lines = text.split('\n')
        return new Map(lines.flatMap((line, i) => (i % 2 === 0 ? [[line, lines[i + 1]]] : [])))
      })
      return fields.every(
        each =>
          each.get('num-other-sentinels') === '2' &&
          each.get('num-slaves') === String(count) &&
          each.get('flags') === 'master'
      )
    })
    // A client is told of those alone that are connected.
    await until('the Sentinels are connected to each other', async () => {
      const seen = await Promise.all(
        ports.map(port => redisCli(port, 'SENTINEL', 'SENTINELS', name))
      )
      return !seen.some(text => text.includes('disconnected'))
    })
    await until('primary and replicas are in step', async () => {
      const told = await redisCli(await primaryPort(), 'INFO', 'replication')
      return told.match(/state=online/g)?.length === count
    })
  }
  const primaryPort = async () => {
    const address = await redisCli(first, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)
    const port = Number(address.split('\n')[1])
    return [primary, replica, ...others][tlsPorts.indexOf(port)]?.port ?? port
  }
  const downAfter = async (ms: number) => {
    await Promise.all(
      ports.map(port =>
        redisCli(port, 'SENTINEL', 'SET', name, 'down-after-milliseconds', String(ms))
      )
    )
  }
  await settled()
  return {
    sentinels: sentinels.map(({ port, tlsPort = port }) => `127.0.0.1:${tlsPort}`),
    name,
    servers: [primary, replica, ...others],
    primaryPort,
    settled,
    failover: async (asked = 0) => await redisCli(ports[asked] ?? 0, 'SENTINEL', 'FAILOVER', name),
    downAfter
  }
}

/** Options of a server or Sentinel that takes TLS at this port, and speaks it to the others. */
function securedBy(tls: Authority | undefined, port: number | undefined): Record<string, string> {
  if (tls === undefined || port === undefined) return {}
  return {
    'tls-port': String(port),
    'tls-replication': 'yes',
    'tls-auth-clients': 'no',
    'tls-cert-file': tls.certificate,
    'tls-key-file': tls.key,
    'tls-ca-cert-file': tls.certificate
  }
}

interface Watched {
  readonly name: string
  readonly primary: number
  readonly tls: Authority | undefined
}

async function startSentinel(
  cleanUp: (undo: () => unknown) => void,
  { name, primary, tls }: Watched
): Promise<{ readonly port: number; readonly tlsPort?: number }> {
  const port = await freePort()
  const tlsPort = tls === undefined ? undefined : await freePort()
  const secured = Object.entries(securedBy(tls, tlsPort)).map(words => `${words.join(' ')}\n`)
  const folder = mkdtempSync(join(tmpdir(), 'sentinel-'))
  const file = join(folder, 'sentinel.conf')
  writeFileSync(
    file,
    `port ${port}\n${secured.join('')}bind 127.0.0.1\ndir ${folder}\nsentinel monitor ${name} 127.0.0.1 ${primary} 2\nsentinel down-after-milliseconds ${name} ${patientMs}\nsentinel failover-timeout ${name} 3000\nsentinel parallel-syncs ${name} 1\n`
  )
  const child = spawn('redis-server', [file, '--sentinel'], {
    stdio: ['ignore', 'ignore', 'inherit']
  })
  cleanUp(async () => {
    const gone = once(child, 'exit')
    if (child.exitCode === null && child.kill('SIGKILL')) await gone
    rmSync(folder, { recursive: true, force: true })
  })
  await until('the Sentinel answers', async () => (await redisCli(port, 'PING')) === 'PONG')
  return { port, ...(tlsPort !== undefined && { tlsPort }) }
}
