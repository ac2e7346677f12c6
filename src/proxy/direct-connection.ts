/** Connections outside the pools, for protocols that only begin as HTTP. */
import type { Socket } from 'node:net'
import { GatewayError } from '../errors.ts'
import type { TrailAttempt } from '../observability/trail.ts'
import { type Address, isLocalError } from './address.ts'
import type { CallContext } from './call.ts'
import { upstreamError } from './failures.ts'

export interface DirectConnection {
  readonly socket: Socket
  /** Scheme, name and port of the address. */
  readonly origin: string
  readonly recorded: TrailAttempt | undefined
}

type Done = (error: GatewayError | null, connection?: DirectConnection) => void

/**
 * Connects to an address; where that fails, to another one, since nothing was written yet. The
 * address counts the connection among what it has in flight.
 */
export function connectDirectly(
  pick: CallContext['pick'],
  done: Done,
  recordAttempt?: (address: string) => TrailAttempt
): void {
  const tried: Address[] = []
  const connect = (address: Address) => {
    address.begin()
    tried.push(address)
    const recorded = recordAttempt?.(address.origin)
    address.connect((error, socket) => {
      if (error === null && socket !== null) {
        countUntilClosed(socket, address)
        address.succeeded()
        return done(null, { socket, origin: address.origin, recorded })
      }
      address.end()
      recorded?.fail(error, upstreamError(error).code)
      const isLocal = isLocalError(error)
      if (!isLocal) address.failedBy('connect')
      const other = isLocal ? undefined : pick(tried)
      if (other === undefined) done(upstreamError(error))
      else connect(other)
    })
  }
  connect(pick() as Address)
}

/** Apart from the above: a closure of that would keep the handshake alive as long as the socket. */
function countUntilClosed(socket: Socket, address: Address): void {
  socket.once('close', () => address.end())
}
