/** The gateways on this machine that a command asks, each by its Unix socket. */
import { existsSync } from 'node:fs'
import { opsSocketOf } from '../config/ops-socket.ts'
import { findGateways, type LocalGateway, socketFolders } from '../ops/socket.ts'
import {
  CommandError,
  defaultFolder,
  type GatewayAddress,
  type Invocation,
  type Io
} from './command.ts'

/**
 * Runs a command at each gateway of the config folder; without that folder, at each that this user
 * may ask. Of several, each is named.
 * @returns the greatest exit code
 */
export async function runAtEach(
  { config, gateway, io }: Omit<Invocation, 'values'>,
  run: (gateway: GatewayAddress) => Promise<number>
): Promise<number> {
  const found = await gatewaysOf(config, io)
  let code = 0
  for (const { file: socket, id } of found) {
    // Not among the output, which may be for programs.
    if (found.length > 1) io.stderr.write(`process ${id}:\n`)
    code = Math.max(code, await run({ ...gateway, socket }))
  }
  return code
}

/** @throws CommandError where there is none */
async function gatewaysOf(config: string, io: Io): Promise<LocalGateway[]> {
  const folder = existsSync(config) ? config : undefined
  if (folder === undefined && config !== defaultFolder) {
    throw new CommandError(`There is no folder ${config}.`)
  }
  const configured = folder === undefined ? undefined : opsSocketOf(folder, io.env)
  if (configured === false) {
    throw new CommandError('ops.socket is false: commands ask this gateway by --url URL.')
  }
  const folders = socketFolders(configured, io.env)
  const found = await findGateways(folders, folder)
  if (found.length > 0) return found
  const whose = folder === undefined ? '' : ` with the config folder ${folder}`
  throw new CommandError(
    `No gateway${whose} runs here that this user may ask: there is no socket of one in ` +
      `${folders.join(', ')}. Is it running? Run this command as its user (or root) and in its ` +
      'container, or ask it from afar by --url URL.'
  )
}
