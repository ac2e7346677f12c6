/** Headers of calls to upstreams by own code (`upstreams.NAME.module`). */
import { Readable } from 'node:stream'
import { headerName } from '../config/schema/primitives.ts'
import type { RoutesConfig, UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError } from '../errors/errors.ts'
import { isRecord } from '../json/values.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { Modules, OwnCode } from '../shaping/module.ts'

const inAscii = /^[\x20-\x7e]*$/

type Ask = (name: string, config: UpstreamConfig) => Upstream
type Added = NonNullable<Upstream['addedTo']>
type Call = Parameters<Added>[0]

/**
 * Gives each call to an upstream that names own code the headers which that adds.
 * @returns the upstream of a name in config
 */
export function withOwnCode(
  ask: Ask,
  modules: Modules,
  { upstreams }: RoutesConfig
): (name: string) => Upstream {
  return name => {
    const config = upstreams[name]
    if (config === undefined) throw new Error(`there is no upstream "${name}"`)
    const upstream = ask(name, config)
    const { module: file = '' } = config
    const code = modules.get(file)
    if (code === undefined) return upstream
    const addedTo: Added = call => headersBy(file, code, call)
    const signed = async <C extends Call>(call: C, path: string): Promise<C> => ({
      ...call,
      headers: { ...call.headers, ...(await addedTo({ ...call, path })) }
    })
    return {
      ...upstream,
      addedTo,
      send: async call => upstream.send(await signed(call, call.path)),
      fetchWhole: async request =>
        upstream.fetchWhole(await signed(request, upstream.base + request.path))
    }
  }
}

/** @throws GatewayError `upstream.module` */
async function headersBy(file: string, code: OwnCode, call: Call): Promise<Record<string, string>> {
  const { method, path, headers, body, recorded } = call
  const text = body instanceof Readable || body === null ? undefined : body?.toString()
  try {
    const route = recorded?.trail.route ?? ''
    const added = await code({ method, path, headers: { ...headers }, body: text }, { route })
    if (!isRecord(added)) throw new TypeError(`${file}: it returned no object of headers`)
    for (const [name, value] of Object.entries(added)) {
      if (headerName.test(name) && typeof value === 'string' && inAscii.test(value)) continue
      throw new TypeError(`${file}: "${name}" is no header in lower case with text in ASCII`)
    }
    return added as Record<string, string>
  } catch (cause) {
    throw new GatewayError('upstream.module', { cause })
  }
}
