/** An upstream over real sockets, with the transitions of its addresses. */
import type { Exchange, UpstreamResponse } from '../../src/proxy/response.ts'
import { createUpstream, type Upstream } from '../../src/proxy/upstream.ts'
import { noTimeOuts } from './time-outs.ts'
import { upstreamConfig } from './upstream-config.ts'

/** @param cleanUp registers its end, such as tap's `t.after` */
export function trackedUpstream(
  cleanUp: (undo: () => unknown) => void,
  written: Record<string, unknown>
) {
  const transitions: string[] = []
  const upstream = createUpstream(upstreamConfig(cleanUp, written), {
    events: {
      onAddress: (address, { to }) => transitions.push(`${address} ${to}`),
      onRetry: () => {},
      onWaited: () => {}
    }
  })
  cleanUp(() => upstream.close())
  return { upstream, transitions }
}

/** Sends a request whose response is streamed beyond 1,000 bytes; undefined where it failed. */
export async function dispatchStreamed(
  upstream: Pick<Upstream, 'dispatch'>,
  request: Parameters<Upstream['dispatch']>[0]
): Promise<UpstreamResponse | undefined> {
  const exchange: Exchange = {
    timeoutMs: 5000,
    timeOuts: noTimeOuts,
    collectBytes: 1000,
    collectOnly: false,
    isHead: false,
    startedAt: performance.now(),
    isGone: false
  }
  return await new Promise(resolve => {
    upstream.dispatch(request, exchange, (_error, response) => resolve(response))
  })
}
