/** A Redis Cluster of six real processes: three primaries, each with a replica. Nobody is called down unless a test bids them to. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Authority } from './authority.ts'
import { redisCli } from './redis-cli.ts'
import { until } from './until.ts'
import { freePorts } from './ports.ts'
import { flags, testRedis, type TestRedis } from './redis.ts'

export interface TestCluster {
  /** HOST:PORT of each node, as clients are told. */
  readonly nodes: string[]
  readonly servers: TestRedis[]
  /** The node that holds the slot of a key now, as the others say when one is away. */
  readonly primaryOf: (key: string, without?: TestRedis) => Promise<TestRedis>
  /** Resolves once every slot is served and every replica is in step; one server may be away. */
  readonly settled: (without?: TestRedis) => Promise<void>
  /** How long a node may be silent until the others call it down. Patient at first: a busy machine is no fault. */
  readonly nodeTimeout: (ms: number, without?: TestRedis) => Promise<void>
}

const patientMs = 120_000

/** @param tls with it clients and nodes speak TLS to each other; `servers` still listen without */
export async function testCluster(
  cleanUp: (undo: () => unknown) => void,
  tls?: Authority
): Promise<TestCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  // The last to be cleaned up comes first: the nodes write their files until they end.
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  const ports = await freePorts(12)
  const secured = (port: number) =>
    tls && {
      'tls-port': port,
      'tls-cluster': 'yes',
      'tls-replication': 'yes',
      'tls-auth-clients': 'no',
      'tls-cert-file': tls.certificate,
      'tls-key-file': tls.key,
      'tls-ca-cert-file': tls.certificate
    }
  const servers = await Promise.all(
    ports.slice(6).map((bus, n) => {
      const options = {
        'cluster-enabled': 'yes',
        'cluster-port': bus,
        'cluster-config-file': `nodes-${n}.conf`,
        'cluster-node-timeout': patientMs,
        'dir': folder,
        'repl-diskless-sync-delay': 0,
        ...secured(ports[n] ?? 0)
      }
      return testRedis(cleanUp, flags(options))
    })
  )
  const nodes = servers.map(({ port }, n) => `127.0.0.1:${tls === undefined ? port : ports[n]}`)
  await redisCli(
    servers[0]?.port ?? 0,
    ...(tls === undefined ? [] : ['--tls', '--cacert', tls.certificate]),
    '--cluster',
    'create',
    ...nodes,
    '--cluster-replicas',
    '1',
    '--cluster-yes'
  )

  const settled = async (without?: TestRedis) => {
    const there = servers.filter(server => server !== without)
    await until('every node finds every slot served', async () =>
      (await Promise.all(there.map(({ port }) => redisCli(port, 'CLUSTER', 'INFO')))).every(info =>
        info.includes('cluster_state:ok')
      )
    )
    await until('every replica is in step', async () => {
      const told = await Promise.all(there.map(({ port }) => redisCli(port, 'INFO', 'replication')))
      return told.every(info =>
        info.includes('role:slave')
          ? info.includes('master_link_status:up')
          : info.includes('state=online') || without !== undefined
      )
    })
  }
  await settled()
  return {
    nodes,
    servers,
    settled,
    nodeTimeout: async (ms, without) => {
      await Promise.all(
        servers
          .filter(server => server !== without)
          .map(({ port }) => redisCli(port, 'CONFIG', 'SET', 'cluster-node-timeout', String(ms)))
      )
    },
    primaryOf: async (key, without) => {
      const asked = servers.find(server => server !== without)
      const slot = Number(await redisCli(asked?.port ?? 0, 'CLUSTER', 'KEYSLOT', key))
      const rows = (await redisCli(asked?.port ?? 0, 'CLUSTER', 'NODES'))
        .split('\n')
        .map(row => row.split(' '))
      const holds = (range: string) => {
        const [from = 0, to = from] = range.split('-').map(Number)
        return slot >= from && slot <= to
      }
      const address = rows.find(row => row[2]?.includes('master') && row.slice(8).some(holds))?.[1]
      const found = servers.find((_server, n) => address?.startsWith(`${nodes[n]}@`))
      if (found === undefined) throw new Error(`nobody holds the slot of ${key}`)
      return found
    }
  }
}
