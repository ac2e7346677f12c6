/** Headers of calls to upstreams by own code (`upstreams.NAME.module`). */
import { Readable } from 'node:stream'
import { headerName } from '../config/schema/primitives.ts'
import type { RoutesConfig, UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError } from '../errors/errors.ts'
import { isRecord } from '../json/values.ts'
import type { Call } from '../proxy/receiver.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { Modules, OwnCode } from '../shaping/module.ts'

const inAscii = /^[\x20-\x7e]*$/

type Ask = (name: string, config: UpstreamConfig) => Upstream
type Added = Pick<Call, 'method' | 'path' | 'headers' | 'body' | 'recorded'>

/** @returns the upstream of a name in config; own code adds headers to its calls */
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
    /** A call that is sent again shall not hold the headers of its first time. */
    const signed = async <C extends Added>(call: C, path = call.path): Promise<C> => ({
      ...call,
      headers: { ...call.headers, ...(await headersBy(file, code, { ...call, path })) }
    })
    return {
      ...upstream,
      send: async call => upstream.send(await signed(call)),
      connect: async call => upstream.connect(await signed(call)),
      fetchWhole: async request =>
        upstream.fetchWhole(await signed(request, upstream.base + request.path))
    }
  }
}

/** @throws GatewayError `upstream.module` */
async function headersBy(
  file: string,
  code: OwnCode,
  call: Added
): Promise<Record<string, string>> {
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
