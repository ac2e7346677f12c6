/** Requests that came as an upgrade to WebSocket: only those may be answered by one. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** An upgrade until its response: a client has to wait for that (RFC 6455 §4.1). */
export interface Upgrade {
  readonly socket: Socket
  /** The client sent something before the response, or its end, or is gone. */
  isBroken: boolean
  /** Called when that happens. */
  onBroken: (() => void) | undefined
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

export function markUpgrade(raw: IncomingMessage, upgrade: Upgrade): void {
  upgrades.set(raw, upgrade)
}

/** @returns undefined for an ordinary request */
export const upgradeOf = (raw: IncomingMessage): Upgrade | undefined => upgrades.get(raw)
