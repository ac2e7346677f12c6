/** Tries the examples of `routes.yaml`: what shapes make of answers, before any request meets them. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Fault } from '../config/schema/faults.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRecord } from '../json/values.ts'
import { createExpressions } from '../shaping/expressions.ts'
import { compileShape } from '../shaping/shape.ts'

/** One fault for each example that does not hold. */
export async function exampleFaults(config: LoadedConfig): Promise<Fault[]> {
  const {
    gateway,
    routes: { shapes, examples },
    limits: {
      expressions: { timeout, maxSize }
    },
    folder
  } = config
  const expressions = createExpressions()
  try {
    const { success } = createEnvelope(gateway.envelope)
    const context = {
      wrap: success,
      shapes,
      evaluate: (expression: string, input: unknown) =>
        expressions.evaluate(expression, input, { timeoutMs: timeout, maxBytes: maxSize })
    }
    const faults: Fault[] = []
    for (const [name, { shape, input, inputFile, output, status }] of Object.entries(examples)) {
      const told = (key: string, message: string) =>
        faults.push(config.fault('routes', ['examples', name, key], message))
      let given = input
      try {
        if (inputFile !== undefined) {
          given = parseKeepingDigits(readFileSync(resolve(folder, inputFile), 'utf8'))
        }
      } catch (error) {
        told(
          'inputFile',
          error instanceof SyntaxError
            ? 'not valid JSON'
            : `the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`
        )
        continue
      }
      const { refusal, apply } = compileShape(shapes[shape] ?? [], context)
      const refused = refusal(given)
      if (refused !== undefined) {
        if (refused.status !== status) {
          told(
            status === undefined ? 'output' : 'status',
            `the shape tells a failure with the status ${refused.status}`
          )
        }
        continue
      }
      if (status !== undefined) {
        told('status', 'the shape takes this answer for a success')
        continue
      }
      try {
        const shaped = parseKeepingDigits(JSON.stringify(await apply(given)))
        const difference = firstDifference(shaped, output, '')
        if (difference !== undefined) told('output', difference)
      } catch (error) {
        told(
          'shape',
          error instanceof GatewayError
            ? `${error.message} ${error.cause instanceof Error ? error.cause.message : ''}`
            : String(error)
        )
      }
    }
    return faults
  } finally {
    await expressions.close()
  }
}

const show = (value: unknown) =>
  ((JSON.stringify(value) as string | undefined) ?? 'nothing').slice(0, 80)

/** `at data.0.title: expected "a", the shape gives "b"`, or undefined where both are alike. */
function firstDifference(found: unknown, expected: unknown, path: string): string | undefined {
  if (isDeepStrictEqual(found, expected)) return undefined
  for (const name of membersOf(found, expected)) {
    const at = (value: unknown) =>
      Object.hasOwn(value as object, name) ? (value as Record<string, unknown>)[name] : undefined
    const difference = firstDifference(
      at(found),
      at(expected),
      path === '' ? name : `${path}.${name}`
    )
    if (difference !== undefined) return difference
  }
  return `${path === '' ? '' : `at ${path}: `}expected ${show(expected)}, the shape gives ${show(found)}`
}

/** The names of members that two records or two lists have. */
function membersOf(found: unknown, expected: unknown): string[] {
  if (isRecord(found) && isRecord(expected)) {
    return [...new Set([...Object.keys(expected), ...Object.keys(found)])]
  }
  if (!Array.isArray(found) || !Array.isArray(expected)) return []
  const length = Math.max(found.length, expected.length)
  return Array.from({ length }, (_, index) => String(index))
}
