/** The metrics of several processes as one text for Prometheus. */
import type { MetricsFormat } from '../../observability/metrics-text.ts'

interface LabelledText {
  /** Labels that each series of this text gets, such as `worker="1"`; empty for none. */
  readonly labels: string
  /** As Prometheus reads it. */
  readonly text: string
}

/**
 * Each metric stands once, with the series of all texts; its help is that of the first text that
 * has it.
 */
export function mergeTexts(
  texts: readonly LabelledText[],
  format: MetricsFormat = 'prometheus'
): string {
  const metrics = new Map<string, { readonly head: string[]; readonly series: string[] }>()
  for (const { labels, text } of texts) {
    let name = ''
    let hasHead = false
    for (const line of text.split('\n')) {
      if (line === '' || line === '# EOF') continue
      const [, kind, metric = ''] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      if (kind !== undefined) {
        if (metric !== name) {
          name = metric
          hasHead = metrics.has(name)
          if (!hasHead) metrics.set(name, { head: [], series: [] })
        }
        if (!hasHead) metrics.get(name)?.head.push(line)
        continue
      }
      metrics.get(name)?.series.push(labels === '' ? line : withLabels(line, labels))
    }
  }
  const lines = [...metrics.values()].flatMap(({ head, series }) => [...head, ...series])
  return `${lines.join('\n')}\n${format === 'openmetrics' ? '# EOF\n' : ''}`
}

function withLabels(line: string, labels: string) {
  return line.replace(
    /^([A-Za-z_:][\w:]*)(\{(\})?)?/,
    (_, name: string, open?: string, close?: string) =>
      `${name}{${labels}${open === undefined || close !== undefined ? '}' : ','}`
  )
}
