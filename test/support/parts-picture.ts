/**
 * The parts of src as a picture, docs/parts.svg: a row for each floor, a line for each import that is not told by a
 * way over other parts. `npm run check:floors -- --draw` writes it; without `--draw` the gate compares.
 */

interface Placed {
  readonly name: string
  readonly x: number
  readonly y: number
}

const boxWidth = 132
const boxHeight = 40
const gapX = 22
const gapY = 46
const margin = 20

const ink = '#1f2933'
const line = '#9aa5b1'
const paper = '#ffffff'
const fill = '#eef2f7'

/**
 * @param floors names of parts, the ground floor first
 * @param arrows pairs of parts, the one that imports first
 */
export function drawParts(
  floors: ReadonlyArray<readonly string[]>,
  arrows: ReadonlyArray<readonly [from: string, to: string]>
): string {
  const width = Math.max(...floors.map(row => row.length)) * (boxWidth + gapX) - gapX + 2 * margin
  const height = floors.length * (boxHeight + gapY) - gapY + 2 * margin
  const placed = new Map<string, Placed>()
  for (const [floor, row] of floors.entries()) {
    const rowWidth = row.length * (boxWidth + gapX) - gapX
    const y = height - margin - boxHeight - floor * (boxHeight + gapY)
    for (const [index, name] of row.entries()) {
      const x = (width - rowWidth) / 2 + index * (boxWidth + gapX)
      placed.set(name, { name, x, y })
    }
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" ` +
      `aria-label="The parts of src and what they import" font-family="sans-serif">`,
    `<rect width="${width}" height="${height}" fill="${paper}"/>`,
    ...withoutDetours(arrows).map(([from, to]) => lineBetween(placed.get(from), placed.get(to))),
    ...[...placed.values()].map(boxOf),
    '</svg>',
    ''
  ].join('\n')
}

function boxOf({ name, x, y }: Placed): string {
  return (
    `<rect x="${x}" y="${y}" width="${boxWidth}" height="${boxHeight}" rx="4" ` +
    `fill="${fill}" stroke="${ink}"/><text x="${x + boxWidth / 2}" y="${y + 25}" ` +
    `text-anchor="middle" font-size="14" fill="${ink}">${name}</text>`
  )
}

function lineBetween(from: Placed | undefined, to: Placed | undefined): string {
  if (from === undefined || to === undefined) return ''
  const [x1, y1] = [from.x + boxWidth / 2, from.y + boxHeight]
  const [x2, y2] = [to.x + boxWidth / 2, to.y]
  const bend = (y2 - y1) / 2
  return (
    `<path d="M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}" ` +
    `fill="none" stroke="${line}"/>`
  )
}

/** Leaves out a → c where a → b → … → c is there too. */
function withoutDetours(
  arrows: ReadonlyArray<readonly [from: string, to: string]>
): ReadonlyArray<readonly [from: string, to: string]> {
  const next = Map.groupBy(arrows, ([from]) => from)
  const reaches = (from: string, goal: string): boolean =>
    (next.get(from) ?? []).some(([, to]) => to === goal || reaches(to, goal))
  return arrows.filter(
    ([from, goal]) => !(next.get(from) ?? []).some(([, via]) => via !== goal && reaches(via, goal))
  )
}
