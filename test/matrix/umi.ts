/**
 * The request plug-in of Umi 4, which Ant Design Pro and its descendants send their requests with.
 * npm has it only as a template inside of `@umijs/plugins` (4.7.27, dist/request.js:190-297), which
 * needs a whole build of Umi to become code, so that it does not run here.
 */
import { AxiosError, axios, type AxiosRequest } from './axios.ts'
import { ConsoleFault, type Display, read } from './display.ts'
import type { Page } from './driver.ts'

/** `error.info` of an error that the console's `errorThrower` made of a body. */
export class BizError extends ConsoleFault {
  readonly info: BizInfo

  constructor(message: string, info: BizInfo) {
    super(message)
    this.info = info
  }
}

export interface BizInfo {
  readonly message: unknown
  readonly showType: unknown
  /** The member `data` of the body: all that a page can read of it. */
  readonly data: unknown
}

interface UmiOptions {
  readonly page: Page
  readonly display: Display
  readonly headers?: () => Readonly<Record<string, string | null>>
  /** Throws a `BizError` for a body that says so. */
  readonly throwError: (body: unknown) => void
  /** `ErrorShowType.REDIRECT` */
  readonly redirect: () => void
  /** What is shown of a status beyond 2xx. */
  readonly statusMessage: (status: number, body: unknown) => unknown
}

/** requestErrorConfig.ts of both consoles: `ErrorShowType` */
const silent = 0
const redirection = 9

/** @returns a function that gives the whole body */
export function umiRequest(options: UmiOptions) {
  const { page, display, headers = () => ({}), throwError } = options
  return async function request(
    call: AxiosRequest,
    { skipErrorHandler = false } = {}
  ): Promise<unknown> {
    try {
      const { data } = await axios(page, { ...call, headers: headers() })
      throwError(data)
      return data
    } catch (error) {
      if (!skipErrorHandler) handle(error)
      throw error
    }
  }

  function handle(error: unknown): void {
    if (error instanceof BizError) {
      const { message, showType } = error.info
      if (showType === redirection) return options.redirect()
      if (showType !== silent) display.say(message)
    } else if (error instanceof AxiosError) {
      const { response } = error
      display.say(
        response === undefined
          ? 'None response! Please retry.'
          : options.statusMessage(response.status, response.data)
      )
    }
  }
}

/** What a form reads of an error: the member `data`, which is all that a `BizError` carries. */
export function errorsIn(error: unknown): unknown {
  if (error instanceof BizError) return error.info.data
  if (!(error instanceof AxiosError)) return undefined
  return read(error.response?.data ?? {}, 'data')
}
