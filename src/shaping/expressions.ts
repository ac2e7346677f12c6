/**
 * JSONata expressions, run in threads of their own: an endless regular expression or list costs one
 * response, not the gateway.
 */
import { type ErrorCode, GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Json } from '../json/values.ts'
import { Lanes } from './expression-lanes.ts'
import type { ExpressionOutcome } from './expression-runner.ts'

export interface Bounds {
  /** For one expression, without the wait for its turn. */
  readonly timeoutMs: number
  /** Of the input's and of the output's JSON. */
  readonly maxBytes: number
  /** The route of the expression: routes take turns. */
  readonly route?: string
}

export interface Expressions {
  /**
   * @throws GatewayError `shape.expression` where it fails or exceeds a bound, `overloaded` where
   * too many wait, `shape.number-too-long` where it calculates with a number that no double holds
   */
  readonly evaluate: (expression: string, input: Json, bounds: Bounds) => Promise<Json>
  readonly close: () => Promise<void>
}

export function createExpressions(): Expressions {
  const lanes = new Lanes()
  return {
    evaluate: async (expression, value, { timeoutMs, maxBytes, route = '' }) => {
      const input = textOf(value)
      if (input.length > maxBytes) throw failed(`its input is larger than ${maxBytes} bytes`)
      const outcome = await new Promise<ExpressionOutcome>((done, refuse) => {
        const task = { expression, input, timeoutMs, maxLength: maxBytes }
        if (!lanes.add(route, { task, timeoutMs, done })) refuse(tooMany())
      })
      if ('error' in outcome) {
        throw failed(outcome.error, 'code' in outcome ? outcome.code : undefined)
      }
      return parseKeepingDigits(outcome.output)
    },
    close: () => lanes.close()
  }
}

function tooMany() {
  return new GatewayError('overloaded', {
    retryAfter: 1,
    cause: new Error('too many expressions wait for their turn')
  })
}

function failed(reason: string, code: ErrorCode = 'shape.expression') {
  return new GatewayError(code, { cause: new Error(reason) })
}

/** @throws GatewayError `shape.expression` where the value is nested too deeply */
function textOf(value: Json): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) throw failed('its input is nested too deeply')
    throw error
  }
}
