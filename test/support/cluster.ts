/** A Redis Cluster of six real processes: three primaries, each with a replica. Nobody is called down unless a test bids them to. */
import type { Authority } from './authority.ts'
import { freePorts } from './ports.ts'
import { redisCli } from './redis-cli.ts'
import { flags, testRedis, type TestRedis, tlsOptions } from './redis.ts'
import { until } from './until.ts'

export type TestCluster = Awaited<ReturnType<typeof testCluster>>

const patientMs = 120_000

/** @param tls with it clients and nodes speak TLS to each other; `servers` still listen without */
export async function testCluster(cleanUp: (undo: () => unknown) => void, tls?: Authority) {
  const ports = await freePorts(12)
  const secured = (port: number) =>
    tls && { ...tlsOptions(port, tls), 'tls-cluster': 'yes', 'tls-replication': 'yes' }
  const servers = await Promise.all(
    ports.slice(6).map(async (bus, n) => {
      const options = {
        'cluster-enabled': 'yes',
        'cluster-port': bus,
        'cluster-node-timeout': patientMs,
        'repl-diskless-sync-delay': 0,
        ...secured(ports[n] ?? 0)
      }
      return await testRedis(cleanUp, flags(options))
    })
  )
  const nodes = servers.map(({ port }, n) => `127.0.0.1:${tls === undefined ? port : ports[n]}`)
  const [first] = servers as [TestRedis, ...TestRedis[]]
  const authority = tls === undefined ? [] : ['--tls', '--cacert', tls.certificate]
  const create = ['--cluster', 'create', ...nodes, '--cluster-replicas', '1', '--cluster-yes']
  await redisCli(first.port, ...authority, ...create)

  /** The answers of all servers, but for one that may be away. */
  const askAll = async (without: TestRedis | undefined, ...words: string[]) =>
    await Promise.all(
      servers.filter(each => each !== without).map(({ port }) => redisCli(port, ...words))
    )
  const settled = async (without?: TestRedis) => {
    await until('every node finds every slot served', async () =>
      (await askAll(without, 'CLUSTER', 'INFO')).every(info => info.includes('cluster_state:ok'))
    )
    await until('every replica is in step', async () =>
      (await askAll(without, 'INFO', 'replication')).every(info =>
        info.includes('role:slave')
          ? info.includes('master_link_status:up')
          : info.includes('state=online') || without !== undefined
      )
    )
  }
  await settled()
  return {
    /** HOST:PORT of each node, as clients are told. */
    nodes,
    servers,
    /** Resolves once every slot is served and every replica is in step; one server may be away. */
    settled,
    /** How long a node may be silent until the others call it down. Patient at first: a busy machine is no fault. */
    nodeTimeout: async (ms: number, without?: TestRedis) =>
      void (await askAll(without, 'CONFIG', 'SET', 'cluster-node-timeout', String(ms))),
    /** The node that holds the slot of a key now, as the others say when one is away. */
    primaryOf: async (key: string, without?: TestRedis): Promise<TestRedis> => {
      const [asked = ''] = await askAll(without, 'CLUSTER', 'KEYSLOT', key)
      const [rows = ''] = await askAll(without, 'CLUSTER', 'NODES')
      const holds = (range: string) => {
        const [from = 0, to = from] = range.split('-').map(Number)
        return Number(asked) >= from && Number(asked) <= to
      }
      const [, address] =
        rows
          .split('\n')
          .map(row => row.split(' '))
          .find(row => row[2]?.includes('master') && row.slice(8).some(holds)) ?? []
      const found = servers.find((_server, n) => address?.startsWith(`${nodes[n]}@`))
      if (found === undefined) throw new Error(`nobody holds the slot of ${key}`)
      return found
    }
  }
}
