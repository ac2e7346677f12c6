/** Connections outside the pools, for protocols that only begin as HTTP. */
import type { Socket } from 'node:net'
import { adopt } from '../observability/emitters.ts'
import type { TrailAttempt } from '../observability/trail.ts'
import { type Address, isLocalError } from './address.ts'
import { type CallContext, recordAttempt, type RecordedCall } from './call.ts'
import { upstreamError } from './failures.ts'

export interface Connection {
  readonly socket: Socket
  /** Scheme, name and port of the address. */
  readonly origin: string
  readonly recorded: TrailAttempt | undefined
}

/**
 * Connects to an address; where that fails, to another one, since nothing was written yet. The
 * address counts the connection among what it has in flight.
 * @throws GatewayError `upstream.*`
 */
export async function connect(context: CallContext, call: RecordedCall): Promise<Connection> {
  const tried: Address[] = []
  let failure: unknown
  for (;;) {
    const address = isLocalError(failure) ? undefined : context.pick(tried)
    if (address === undefined) throw upstreamError(failure)
    tried.push(address)
    const { origin } = address
    address.begin()
    const recorded = recordAttempt(context, call, address)
    try {
      const socket = adopt(await address.connect())
      countUntilClosed(socket, address)
      address.succeeded()
      return { socket, origin, recorded }
    } catch (error) {
      failure = error
      address.end()
      recorded?.fail(error, upstreamError(error).code)
      if (!isLocalError(error)) address.failedBy('connect')
    }
  }
}

/** Apart from the above: a closure of that would keep the handshake alive as long as the socket. */
function countUntilClosed(socket: Socket, address: Address): void {
  socket.once('close', () => address.end())
}
