/** Whether what a config names can be reached: upstreams, Redis, and what sign-in needs. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../config/schema/config.ts'
import { reasonOf } from '../config/schema/faults.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { redisKeys } from '../config/schema/gateway.ts'
import type { LdapConfig } from '../config/schema/login.ts'
import { Provider } from '../login/oidc/provider.ts'
import { createUpstream } from '../proxy/upstream.ts'
import { connectMsOf, createRedisDialler, slotPrefix } from './redis.ts'
import { probeRedis } from './redis-watch.ts'

export interface Reached {
  readonly what: string
  readonly address: string
  readonly fault?: string
  readonly advice?: string
}

/** @param username is looked up in LDAP directories, without a password */
export async function reachAll(config: Config, username?: string): Promise<Reached[]> {
  const upstreams = await Promise.all(
    Object.entries(config.routes.upstreams).map(async each => await reachUpstream(...each))
  )
  const redis = await reachRedis(config)
  const signIns = await reachSignIn(config, upstreams.flat(), username)
  return [...upstreams.flat(), ...redis, ...signIns]
}

async function tried(
  place: Pick<Reached, 'what' | 'address'>,
  attempt: Promise<string | undefined | void>
): Promise<Reached> {
  return await attempt.then(
    advice => ({ ...place, ...(advice && { advice }) }),
    (error: unknown) => ({ ...place, fault: reasonOf(error) })
  )
}

async function reachUpstream(name: string, config: UpstreamConfig) {
  const upstream = createUpstream(config)
  const reached = upstream.addresses.map(async address => {
    const connecting = address.connect().then(socket => void socket.destroy())
    return await tried({ what: `upstream ${name}`, address: address.origin }, connecting)
  })
  const all = await Promise.all(reached)
  await upstream.close()
  return all
}

const writeBound =
  'set min-replicas-to-write 1 in Redis: else a primary that is cut off takes sign-outs that ' +
  'other replicas of the gateway hear of late'

async function reachRedis({ gateway }: Config): Promise<Reached[]> {
  const { redis } = gateway
  if (redis === undefined || redisKeys(gateway).length === 0) return []
  const dialler = createRedisDialler(redis)
  const place = { what: 'redis', address: dialler.place }
  const connecting = Promise.withResolvers<string | undefined>()
  const client = dialler.client(connecting.resolve)
  const late = wait(connectMsOf(redis) + redis.commandTimeout, 'no connection in time', {
    ref: false
  })
  const ask = async () => {
    const fault =
      (await Promise.race([connecting.promise, late])) ??
      (await probeRedis(client, slotPrefix(redis.prefix)))
    if (fault !== undefined) throw new Error(fault)
    if (redis.sentinels.length === 0) return undefined
    // Only a server that has the bound tells how many replicas count for it.
    const info = await client.info('replication').catch(() => undefined)
    return info?.includes('min_slaves_good_slaves:') === false ? writeBound : undefined
  }
  return [await tried(place, ask().finally(dialler.close))]
}

/** A sign-in that a back-end decides needs that back-end; nobody is signed in to find out. */
async function reachSignIn(
  { gateway }: Config,
  upstreams: readonly Reached[],
  username: string | undefined
): Promise<Reached[]> {
  const reached = Object.entries(gateway.login.sources).map(async ([name, source]) => {
    const what = `sign-in ${name}`
    if (source.kind === 'users-file') return { what, address: source.file }
    if (source.kind === 'ldap') return await reachDirectory(what, source, username)
    if (source.kind === 'oidc') {
      const reading = new Provider(source).readKeys().then(
        () => {},
        ({ cause }: Error) => Promise.reject(cause)
      )
      return await tried({ what, address: source.issuer }, reading)
    }
    const address = `upstream ${source.upstream}`
    const works = upstreams.some(each => each.what === address && each.fault === undefined)
    return { what, address, ...(!works && { fault: 'its upstream cannot be reached' }) }
  })
  return (await Promise.all(reached)).flat()
}

const directoryMs = 5000

async function reachDirectory(what: string, directory: LdapConfig, username: string | undefined) {
  const { lookUp } = await import('../login/ldap/directory.ts')
  const look = async (url: string) => {
    const user = await lookUp(directory, { url, withinMs: directoryMs }, username ?? 'nobody')
    if (username === undefined) return undefined
    const found =
      user && `id ${user.id}, name ${user.name}, roles ${user.roles.join(', ') || 'none'}`
    return `${username}: ${found ?? 'no such user, or several'}`
  }
  return await Promise.all(directory.urls.map(url => tried({ what, address: url }, look(url))))
}
