/** A primary, its replicas and three Sentinels that watch them: real processes, which call nobody down unless a test bids them to. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Authority } from './authority.ts'
import { running } from './command.ts'
import { freePort, freePorts } from './ports.ts'
import { redisCli } from './redis-cli.ts'
import { flags, testRedis, type TestRedis, tlsOptions } from './redis.ts'
import { temporaryFolder } from './temporary.ts'
import { until } from './until.ts'

type CleanUp = (undo: () => unknown) => void

interface Options {
  /** Further arguments for all servers. */
  readonly extra?: readonly string[]
  readonly replicas?: number
  /**
   * With it clients, servers and Sentinels speak TLS to each other; the ports of `servers` and
   * `primaryPort` are those without.
   */
  readonly tls?: Authority
}

export type TestSentinel = Awaited<ReturnType<typeof testSentinel>>

export const patientMs = 120_000
const name = 'mymaster'

const securedBy = (tls: Authority | undefined, port: number) =>
  tls === undefined ? {} : { ...tlsOptions(port, tls), 'tls-replication': 'yes' }

export async function testSentinel(
  cleanUp: CleanUp,
  { extra = [], replicas = 1, tls }: Options = {}
) {
  const tlsPorts = await freePorts(replicas + 1)
  const start = async (n: number, ...more: readonly string[]) => {
    const own = flags({ 'repl-diskless-sync-delay': 0, ...securedBy(tls, tlsPorts[n] ?? 0) })
    return await testRedis(cleanUp, [...own, ...more, ...extra])
  }
  const primary = await start(0)
  const followed = (tls && tlsPorts[0]) ?? primary.port
  const heirs = (await Promise.all(
    Array.from({ length: replicas }, (_, n) => start(n + 1, '--replicaof', `127.0.0.1 ${followed}`))
  )) as [TestRedis, ...TestRedis[]]
  for (const { port } of heirs) {
    await until('the replica is in step', async () =>
      (await redisCli(port, 'INFO', 'replication')).includes('master_link_status:up')
    )
  }
  const watching = await Promise.all(
    [1, 2, 3].map(async () => await startSentinel(cleanUp, followed, tls))
  )
  const ports = watching.map(({ port }) => port)
  const ask = async (...words: string[]) =>
    await Promise.all(ports.map(port => redisCli(port, 'SENTINEL', ...words)))

  const servers = [primary, ...heirs] as const
  const primaryPort = async () => {
    const [address = ''] = await ask('GET-MASTER-ADDR-BY-NAME', name)
    const port = Number(address.split('\n')[1])
    return servers[tlsPorts.indexOf(port)]?.port ?? port
  }
  const settled = async () => {
    await until('the Sentinels know each other and the replica', async () => {
      const wanted = ['num-other-sentinels\n2\n', `num-slaves\n${replicas}\n`, 'flags\nmaster\n']
      return (await ask('MASTER', name)).every(text => wanted.every(part => text.includes(part)))
    })
    // A client is told of those alone that are connected.
    await until('the Sentinels are connected to each other', async () =>
      (await ask('SENTINELS', name)).every(text => !text.includes('disconnected'))
    )
    await until('primary and replicas are in step', async () => {
      const told = await redisCli(await primaryPort(), 'INFO', 'replication')
      return told.match(/state=online/g)?.length === replicas
    })
  }
  await settled()
  return {
    /** HOST:PORT of each Sentinel. */
    sentinels: watching.map(({ address }) => address),
    name,
    /** The primary, then its replicas. */
    servers,
    /** Where the Sentinels say that the primary is. */
    primaryPort,
    /** Resolves once the two are primary and replica again, in step, and the Sentinels have seen it. */
    settled,
    /** Has a Sentinel make the replica the primary. */
    failover: async (asked = 0) => await redisCli(ports[asked] ?? 0, 'SENTINEL', 'FAILOVER', name),
    /** How long the primary may be silent until the Sentinels call it down. Patient at first: a busy machine is no fault. */
    downAfter: async (ms: number) =>
      void (await ask('SET', name, 'down-after-milliseconds', String(ms)))
  }
}

async function startSentinel(cleanUp: CleanUp, primary: number, tls: Authority | undefined) {
  const [port, tlsPort] = [await freePort(), await freePort()]
  const folder = temporaryFolder()
  const file = join(folder, 'sentinel.conf')
  const options = {
    port,
    ...securedBy(tls, tlsPort),
    'bind': '127.0.0.1',
    'dir': folder,
    'sentinel monitor': `${name} 127.0.0.1 ${primary} 2`,
    'sentinel down-after-milliseconds': `${name} ${patientMs}`,
    'sentinel failover-timeout': `${name} 3000`,
    'sentinel parallel-syncs': `${name} 1`
  }
  writeFileSync(
    file,
    Object.entries(options)
      .map(words => `${words.join(' ')}\n`)
      .join('')
  )
  await running(cleanUp, 'redis-server', [file, '--sentinel']).says('+monitor master')
  return { port, address: `127.0.0.1:${tls === undefined ? port : tlsPort}` }
}
