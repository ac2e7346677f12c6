/** Bundles the ops page for `dist/page/`: one script, its styles and its document. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild-wasm'

/** @param {string} outdir such as `dist/page` */
export async function bundlePage(outdir) {
  const folder = import.meta.dirname
  mkdirSync(join(outdir, 'packages'), { recursive: true })
  await build({
    absWorkingDir: folder,
    entryPoints: ['main.ts', 'page.css'],
    outdir,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: ['es2023', 'chrome123', 'firefox121', 'safari17.5'],
    minify: true,
    legalComments: 'external',
    logLevel: 'warning'
  })
  const styles = new URL('uPlot.min.css', import.meta.resolve('uplot'))
  copyFileSync(styles, join(outdir, 'packages', 'uplot.css'))
  for (const name of ['index.html', 'icon.svg']) {
    copyFileSync(join(folder, name), join(outdir, name))
  }
}
