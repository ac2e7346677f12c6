/** A flame graph of a CPU profile: each bar is a function, as wide as the time in it and in those that it called. */

export interface Frame {
  readonly name: string
  /** Where its own time belongs: a package, or a part of the gateway. */
  readonly owner: string
}

interface Bar extends Frame {
  micros: number
  readonly children: Map<string, Bar>
}

const width = 1600
const rowHeight = 16
/** Narrower bars are left out. */
const leastWidth = 1
/** Wide enough for so many letters of text. */
const letterWidth = 6.2

export class Flame {
  readonly #all: Bar = { name: 'all', owner: '', micros: 0, children: new Map() }

  /** @param stack from the outermost function to the innermost */
  add(stack: readonly Frame[], micros: number): void {
    let bar = this.#all
    bar.micros += micros
    for (const { name, owner } of stack) {
      let child = bar.children.get(name)
      if (child === undefined) {
        child = { name, owner, micros: 0, children: new Map() }
        bar.children.set(name, child)
      }
      child.micros += micros
      bar = child
    }
  }

  svg(title: string): string {
    const bars: string[] = []
    const scale = width / this.#all.micros
    let rows = 0
    const draw = (bar: Bar, x: number, row: number) => {
      const wide = bar.micros * scale
      if (wide < leastWidth) return
      rows = Math.max(rows, row + 1)
      bars.push(this.#barOf(bar, { x, row, wide }))
      let at = x
      for (const child of [...bar.children.values()].toSorted((a, b) => b.micros - a.micros)) {
        draw(child, at, row + 1)
        at += child.micros * scale
      }
    }
    draw(this.#all, 0, 2)
    const height = rows * rowHeight
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="10">
<rect width="100%" height="100%" fill="#fff"/>
<text x="4" y="18" font-size="13">${escaped(title)}</text>
${bars.join('\n')}
</svg>
`
  }

  #barOf(
    bar: Bar,
    at: { readonly x: number; readonly row: number; readonly wide: number }
  ): string {
    const { name, owner, micros } = bar
    const y = at.row * rowHeight
    const share = ((100 * micros) / this.#all.micros).toFixed(1)
    const letters = Math.floor((at.wide - 4) / letterWidth)
    const label = letters < 3 ? '' : escaped(name.slice(0, letters))
    return (
      `<g><title>${escaped(`${name}, ${owner}: ${share} %`)}</title>` +
      `<rect x="${at.x.toFixed(1)}" y="${y}" width="${at.wide.toFixed(1)}" height="${rowHeight - 1}" fill="${colorOf(owner)}"/>` +
      `<text x="${(at.x + 2).toFixed(1)}" y="${y + 11}">${label}</text></g>`
    )
  }
}

/** Own code blue, packages yellow, Node itself grey. */
function colorOf(owner: string): string {
  if (owner.startsWith('src/')) return '#9cc4f5'
  return owner === 'Node itself' || owner === '' ? '#d5d9de' : '#f5d58a'
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
