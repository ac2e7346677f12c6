/** The metrics of several processes as one text for Prometheus. */

interface LabelledText {
  /** What each series of this text gets, such as `worker="1"`; empty for nothing. */
  readonly labels: string
  /** As Prometheus reads it. */
  readonly text: string
}

/** Each metric stands once, with the series of all; what it is for is told as in the first text that has it. */
export function mergeTexts(texts: readonly LabelledText[]): string {
  const metrics = new Map<string, { readonly head: string[]; readonly series: string[] }>()
  for (const { labels, text } of texts) {
    let name = ''
    let known = false
    for (const line of text.split('\n')) {
      if (line === '' || line === '# EOF') continue
      const [, kind, of = ''] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      if (kind !== undefined) {
        if (of !== name) {
          name = of
          known = metrics.has(name)
          if (!known) metrics.set(name, { head: [], series: [] })
        }
        if (!known) metrics.get(name)?.head.push(line)
        continue
      }
      metrics.get(name)?.series.push(labels === '' ? line : withLabels(line, labels))
    }
  }
  return `${[...metrics.values()].flatMap(({ head, series }) => [...head, ...series]).join('\n')}\n`
}

function withLabels(line: string, labels: string) {
  return line.replace(
    /^([A-Za-z_:][\w:]*)(\{(\})?)?/,
    (_, name: string, open?: string, close?: string) =>
      `${name}{${labels}${open === undefined || close !== undefined ? '}' : ','}`
  )
}
