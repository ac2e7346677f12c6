/** Config as its files and presets have it: values from outside stand as their references. */
import { isRecord } from '../../json/values.ts'
import { asNode, type Node, visit } from '../schema/visit.ts'
import { isReference } from './references.ts'
import type { ConfigFile } from '../schema/config.ts'
import { holdsSecret } from '../schema/schema-faults.ts'
import { gatewaySchema } from '../schema/gateway.ts'
import { limitsSchema } from '../schema/limits.ts'
import { routesSchema } from '../schema/routes.ts'

export const schemaOf: Readonly<Record<ConfigFile, Node>> = {
  gateway: asNode(gatewaySchema),
  routes: asNode(routesSchema),
  limits: asNode(limitsSchema)
}

/** Replaces what is no reference in the place of a secret, or of a mapping or list with secrets. */
export function hideSecrets(schema: Node, value: unknown): unknown {
  return visit(schema, value, ({ schema: at, value: written, put }) => {
    if (written === undefined || written === null) return
    const isMapping = at.type === 'object' && isRecord(written)
    const isList = at.type === 'array' && Array.isArray(written)
    const isSafe = typeof written === 'string' && isReference(written)
    if (!isMapping && !isList && !isSafe && holdsSecret(at)) put('(a secret)')
  })
}

/** A copy of mappings and lists; other values stay, such as numbers that only JSON can write. */
export function copyTree<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyTree) as T
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, copyTree(member)])
  ) as T
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
