/** An upstream over real sockets, with the transitions of its addresses. */
import type { Call } from '../../src/proxy/receiver.ts'
import type { UpstreamResponse } from '../../src/proxy/response.ts'
import { createUpstream, type Upstream } from '../../src/proxy/upstream.ts'
import { upstreamConfig } from './upstream-config.ts'

/** @param cleanUp registers its end, such as tap's `t.after` */
export function trackedUpstream(
  cleanUp: (undo: () => unknown) => void,
  written: Record<string, unknown>
) {
  const transitions: string[] = []
  const upstream = createUpstream(upstreamConfig(cleanUp, written), {
    events: {
      onAddress: (address, change) => transitions.push(`${address} ${change}`),
      onRetry: () => {},
      onWaited: () => {}
    }
  })
  cleanUp(() => upstream.close())
  return { upstream, transitions }
}

/** Sends a request whose response is streamed beyond 1,000 bytes; undefined where it failed. */
export async function sendStreamed(
  upstream: Pick<Upstream, 'send'>,
  request: Pick<Call, 'method' | 'path' | 'headers' | 'body'>
): Promise<UpstreamResponse | undefined> {
  const bounds = { timeoutMs: 5000, totalMs: 60_000, collectBytes: 1000, collectsAll: false }
  return await upstream.send({ ...request, ...bounds }).catch(() => undefined)
}
