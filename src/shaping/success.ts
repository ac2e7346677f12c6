/** The body of a success: the value among the members by which a console recognizes one. */
import { isRecord, type JsonRecord, put } from '../json/values.ts'
import type { Envelope, Members } from './dialect.ts'

export const jsonType = 'application/json; charset=utf-8'

/**
 * @param head the members of every success, such as its code
 * @param dataName false: the members of every object stand beside the code
 */
export function createSuccess(head: Members, dataName: string | false): Envelope['success'] {
  const name = dataName === false ? 'data' : dataName
  return (data, extra = {}, placement = 'data') => {
    if (placement === 'none') return data
    if ((placement === 'flat' || dataName === false) && isRecord(data)) {
      return flat(head, data, extra)
    }
    return { ...head, [name]: data, ...extra }
  }
}

/** A member of the value never replaces one by which a console tells success from failure. */
function flat(head: Members, data: JsonRecord, extra: Members): JsonRecord {
  const body: JsonRecord = { ...head }
  for (const name of Object.keys(data)) if (!Object.hasOwn(head, name)) put(body, name, data[name])
  return Object.assign(body, extra)
}
