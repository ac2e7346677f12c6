/** The HTTP status of a route's errors, for the decision `errors`. */
import type { Config } from '../../config/schema/config.ts'

type EnvelopeSettings = Config['gateway']['envelope']

/** @param settings of the route; a status of `custom`, the config's own dialect, wins over them */
export function errorStatusText(
  { dialect, errorStatus }: Pick<EnvelopeSettings, 'dialect' | 'errorStatus'>,
  custom: EnvelopeSettings['custom']
): string {
  const isOk = errorStatus === 'ok'
  const entries = dialect === 'custom' ? Object.values(custom?.errors ?? {}) : []
  if (entries.every(({ status }) => status === undefined)) {
    return isOk ? 'always the status 200' : 'the status of the error'
  }
  const others = isOk ? '200' : 'the error’s own'
  return `the status of its entry in envelope.custom.errors, else ${others}`
}
