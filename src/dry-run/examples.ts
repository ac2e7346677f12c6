/** Runs the examples of `routes.yaml`: tests of shapes, before any request uses them. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Fault } from '../config/schema/faults.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { GatewayError } from '../errors.ts'
import { readJson } from '../json/body.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRecord } from '../json/values.ts'
import { createExpressions } from '../shaping/expressions.ts'
import { compileShape } from '../shaping/shape.ts'

/** One fault for each example that fails. */
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
      const report = (key: string, message: string) =>
        faults.push(config.fault('routes', ['examples', name, key], message))
      let response = input
      try {
        if (inputFile !== undefined) {
          response = readJson(readFileSync(resolve(folder, inputFile)), {}, Infinity)
        }
      } catch (error) {
        report(
          'inputFile',
          error instanceof GatewayError
            ? 'not valid JSON'
            : `the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'})`
        )
        continue
      }
      const { refusal, apply } = compileShape(shapes[shape] ?? [], context)
      const refused = refusal(response)
      if (refused !== undefined) {
        if (refused.status !== status) {
          report(
            status === undefined ? 'output' : 'status',
            `the shape gives a failure with the status ${refused.status}`
          )
        }
        continue
      }
      if (status !== undefined) {
        report('status', 'the shape takes this response for a success')
        continue
      }
      try {
        const shaped = parseKeepingDigits(JSON.stringify(await apply(response)))
        const difference = firstDifference(shaped, output, '')
        if (difference !== undefined) report('output', difference)
      } catch (error) {
        report(
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

/** `at data.0.title: expected "a", the shape gives "b"`; undefined if both are equal. */
function firstDifference(actual: unknown, expected: unknown, path: string): string | undefined {
  if (isDeepStrictEqual(actual, expected)) return undefined
  for (const name of membersOf(actual, expected)) {
    const at = (value: unknown) =>
      Object.hasOwn(value as object, name) ? (value as Record<string, unknown>)[name] : undefined
    const difference = firstDifference(
      at(actual),
      at(expected),
      path === '' ? name : `${path}.${name}`
    )
    if (difference !== undefined) return difference
  }
  return `${path === '' ? '' : `at ${path}: `}expected ${show(expected)}, the shape gives ${show(actual)}`
}

/** The member names of two records, or the indexes of two lists. */
function membersOf(actual: unknown, expected: unknown): string[] {
  if (isRecord(actual) && isRecord(expected)) {
    return [...new Set([...Object.keys(expected), ...Object.keys(actual)])]
  }
  if (!Array.isArray(actual) || !Array.isArray(expected)) return []
  const length = Math.max(actual.length, expected.length)
  return Array.from({ length }, (_, index) => String(index))
}
