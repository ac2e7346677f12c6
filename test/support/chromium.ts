/** A real Chromium, headless, with a profile of its own. */
import { spawnSync } from 'node:child_process'
import { chromium, type Browser } from 'playwright-core'

const flags = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync'
]

export async function testBrowser(cleanUp: (undo: () => unknown) => void): Promise<Browser> {
  const found = spawnSync(
    'sh',
    ['-c', 'command -v chromium || command -v chromium-browser || command -v google-chrome'],
    { encoding: 'utf8' }
  ).stdout.trim()
  if (found === '') throw new Error('there is no Chromium: npm test installs Debian’s')
  // Chromium refuses its sandbox to root.
  const browser = await chromium.launch({
    executablePath: found,
    timeout: 120_000,
    args: [...flags, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])]
  })
  cleanUp(() => browser.close())
  return browser
}
