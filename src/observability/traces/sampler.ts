/** Which traces are recorded: the samplers of OpenTelemetry's `OTEL_TRACES_SAMPLER`. */

/** @param parentSampled the caller's decision; undefined without a caller's trace */
export type Sampler = (traceId: string, parentSampled: boolean | undefined) => boolean

const roots = {
  always_on: () => () => true,
  always_off: () => () => false,
  traceidratio: ofRatio
} satisfies Record<string, (ratio: number) => (traceId: string) => boolean>

export const defaultSampler = 'parentbased_always_on'

export function createSampler(name: string, ratio: number): Sampler {
  const root = roots[name.replace(/^parentbased_/, '') as keyof typeof roots](ratio)
  if (!name.startsWith('parentbased_')) return root
  return (traceId, parentSampled) => parentSampled ?? root(traceId)
}

/** The same trace gets the same decision everywhere: its last 52 bits are random. */
function ofRatio(ratio: number) {
  const rejected = (1 - ratio) * 2 ** 52
  return (traceId: string) => Number.parseInt(traceId.slice(19), 16) >= rejected
}

export function isSamplerName(name: string): boolean {
  return Object.hasOwn(roots, name.replace(/^parentbased_/, ''))
}
