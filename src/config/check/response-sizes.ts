/**
 * Warns of bounds on shaped responses that would keep all other requests waiting: they are parsed
 * without a pause.
 */
import type { CheckedConfig, Report } from './report.ts'

const largeResponseBytes = 4 * 1024 ** 2
/** Measured with long numbers, the slowest case. */
const secondsPerMiB = 0.13

export function checkResponseSizes(
  { routes: config, limits }: CheckedConfig,
  report: Report
): void {
  for (const [name, { maxShaped }] of Object.entries(config.routes)) {
    const message = messageOf(maxShaped)
    if (message === undefined) continue
    report('routes', ['routes', name, 'maxShaped'], message, 'warning')
  }
  const message = messageOf(limits.sizes.shape)
  if (message !== undefined) report('limits', ['sizes', 'shape'], message, 'warning')
}

function messageOf(bytes: number | undefined): string | undefined {
  if (typeof bytes !== 'number' || bytes <= largeResponseBytes) return undefined
  const seconds = ((bytes / 1024 ** 2) * secondsPerMiB).toFixed(1)
  return `responses of this size delay all other requests by up to ${seconds} s: use smaller pages`
}
