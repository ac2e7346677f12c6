/** The members of an error beside those of its dialect, which win over them. */
import type { GatewayError } from '../errors/errors.ts'
import type { Members } from './dialect.ts'

/** @param fieldErrors the name of the member with the errors of single fields, or false */
export function errorExtra({ detail }: GatewayError, fieldErrors: string | false): Members {
  const { code: _, ...extra } = detail.extra ?? {}
  if (fieldErrors === false || detail.fieldErrors === undefined) return extra
  return { ...extra, [fieldErrors]: detail.fieldErrors }
}
