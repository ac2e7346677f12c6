/** Links within the documents lead somewhere. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'

const documents = execFileSync('git', ['ls-files', '*.md'], { encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter(existsSync)

/** Written ones, and as GitHub makes them of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replaceAll(/^```[^]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)
  const ofHeadings = Array.from(headings, ([, heading = '']) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
  )
  const written = Array.from(text.matchAll(/<a id="([^"]+)">/g), ([, id = '']) => id)
  return new Set([...ofHeadings, ...written])
}

t.test('each link of a document', async t => {
  for (const document of documents) {
    const text = readFileSync(document, 'utf8')
    for (const [, link = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue
      const [path = '', anchor] = link.split('#')
      const file = path === '' ? document : join(dirname(document), path)
      if (!t.ok(existsSync(file), `${document}: ${link}`) || anchor === undefined) continue
      t.ok(anchorsOf(readFileSync(file, 'utf8')).has(anchor), `${document}: ${link}`)
    }
  }
})
