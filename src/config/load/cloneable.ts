/**
 * Configs on their way to another thread or process. Structured clones refuse the raw numbers
 * (`JSON.rawJSON`) of examples, so these travel as bigints.
 */
import { isRawNumber, isRecord, rawNumber } from '../../json/values.ts'
import type { Config } from '../schema/config.ts'

type Change = (value: unknown) => unknown

const toBigInt: Change = value => (isRawNumber(value) ? BigInt(value.rawJSON) : value)
const toRawNumber: Change = value => (typeof value === 'bigint' ? rawNumber(String(value)) : value)

export const toCloneable = <T extends Config>(config: T): T => withNumbers(config, toBigInt)
export const fromCloneable = <T extends Config>(config: T): T => withNumbers(config, toRawNumber)

/** Only examples hold such numbers. */
function withNumbers<T extends Config>(config: T, change: Change): T {
  const { routes, written } = config
  return {
    ...config,
    routes: { ...routes, examples: changed(routes.examples, change) },
    written: { ...written, routes: changed(written.routes, change) }
  }
}

function changed<T>(value: T, change: Change): T {
  if (Array.isArray(value)) return value.map(item => changed<unknown>(item, change)) as T
  if (!isRecord(value)) return change(value) as T
  const members = Object.entries(value).map(([name, member]) => [name, changed(member, change)])
  return Object.fromEntries(members) as T
}
