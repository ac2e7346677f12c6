import t from 'tap'
import { createKeptDocument } from '../../src/api-docs/kept-document.ts'
import { openApi } from '../../src/api-docs/openapi.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import { configFolder } from '../support/gateway.ts'

t.test('the document is written once for each config', async t => {
  const load = async () => loadConfig(await configFolder({}), {})
  const [first, second] = [await load(), await load()]
  let running = first
  const document = createKeptDocument(() => running)
  const json = document()
  t.same(JSON.parse(json.toString()), openApi(first))
  t.equal(document(), json)
  running = second
  t.not(document(), json)
})
