/** The OpenAPI document of the running config, as JSON. */
import type { Config } from '../config/schema/config.ts'
import { openApi } from './openapi.ts'

/** Written when it is first asked for, and kept for as long as the config runs. */
export function createKeptDocument(running: () => Config): () => Buffer {
  let kept: { readonly config: Config; readonly json: Buffer } | undefined
  return () => {
    const config = running()
    if (kept?.config !== config) {
      kept = { config, json: Buffer.from(JSON.stringify(openApi(config))) }
    }
    return kept.json
  }
}
