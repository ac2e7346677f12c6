/** Bounds of the WebSockets that a user and a route have at once. */
import type { FastifyRequest } from 'fastify'
import type { WebSocketConfig } from '../../config/schema/websocket.ts'
import { GatewayError } from '../../errors/errors.ts'
import { identityKey } from '../../session/identity-key.ts'
import type { Gateway } from '../gateway.ts'
import { liveOf } from '../hooks/session.ts'

/** @returns takes a place, and returns what gives it back */
export function createSlots(
  name: string,
  { perUser, connections }: WebSocketConfig,
  { inFlight, addressOf, counters: { onRefused } }: Gateway
): (request: FastifyRequest) => () => void {
  const routeKey = `websocket:${name}`
  const change = (key: string, by: number) => {
    const count = (inFlight.get(key) ?? 0) + by
    if (count > 0) inFlight.set(key, count)
    else inFlight.delete(key)
  }

  return request => {
    const session = liveOf(request)?.session
    const subject = session === undefined ? addressOf(request) : identityKey(session)
    const userKey = `${routeKey}:${subject}`
    if ((inFlight.get(userKey) ?? 0) >= perUser) {
      onRefused('websocket.perUser', false)
      throw new GatewayError('limit.exceeded', {
        retryAfter: 1,
        limit: 'websocket.perUser',
        limitMax: perUser,
        message: 'Too many open connections. Please close some first.'
      })
    }
    if ((inFlight.get(routeKey) ?? 0) >= connections) {
      onRefused('websocket.connections', false)
      const limit = 'websocket.connections'
      throw new GatewayError('overloaded', { retryAfter: 1, limit, limitMax: connections })
    }
    change(userKey, 1)
    change(routeKey, 1)
    return () => {
      change(userKey, -1)
      change(routeKey, -1)
    }
  }
}
