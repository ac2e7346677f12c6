/** The data of the operators' page. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isStillOperator } from '../../admin/access.ts'
import { addConfigData } from '../../admin/config-data.ts'
import { addNow } from '../../admin/now.ts'
import type { Operated } from '../operated.ts'
import { ConfigView } from './config-view.ts'
import { nowReader } from './now.ts'

export function addData(app: FastifyInstance, operated: Operated): void {
  const { publicServer } = operated
  const isAllowed = (request: FastifyRequest) => isStillOperator(request, publicServer.findOperator)
  addNow(app, { read: nowReader(operated), isAllowed })
  const view = new ConfigView(operated)
  addConfigData(app, {
    current: () => view.current(),
    files: () => view.files(),
    expectations: () => view.expectations(),
    contracts: () => view.contracts()
  })
}
