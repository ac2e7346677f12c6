/**
 * The request plug-in of Umi 4, which Ant Design Pro and its descendants send their requests with.
 * npm has it only as a template inside of `@umijs/plugins` (4.7.27, dist/request.js:190-297), which
 * needs a whole build of Umi to become code, so that it does not run here.
 */
import { AxiosError, axios, type AxiosRequest } from './axios.ts'
import { ConsoleFault, type Display, read, text } from './display.ts'
import type { Page } from './driver.ts'

/** What the `errorThrower` of a console makes of a body. */
class BizError extends ConsoleFault {
  readonly showType: unknown
  /** All that a page can read of the body. */
  readonly data: unknown

  constructor(message: unknown, body: unknown) {
    super(text(message))
    this.showType = read(body, 'showType')
    this.data = read(body, 'data')
  }
}

interface UmiOptions {
  readonly page: Page
  readonly display: Display
  readonly headers?: () => Readonly<Record<string, string | null>>
  readonly isRefusal: (body: unknown) => boolean
  /** The member with the message. */
  readonly message: string
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
  const { page, display, headers = () => ({}), isRefusal, message, redirect } = options
  return async function request(
    call: AxiosRequest,
    { skipErrorHandler = false } = {}
  ): Promise<unknown> {
    const say = (shown: unknown) => skipErrorHandler || display.say(shown)
    const { data } = await axios(page, { ...call, headers: headers() }, ({ response }) =>
      say(
        response === undefined
          ? 'None response! Please retry.'
          : options.statusMessage(response.status, response.data)
      )
    )
    if (!isRefusal(data)) return data
    const error = new BizError(read(data, message), data)
    if (error.showType === redirection && !skipErrorHandler) redirect()
    else if (error.showType !== silent) say(read(data, message))
    throw error
  }
}

/** What a form reads of an error: the member `data`, which is all that a `BizError` carries. */
export function errorsIn(error: unknown): unknown {
  if (error instanceof BizError) return error.data
  if (!(error instanceof AxiosError)) return undefined
  return read(error.response?.data ?? {}, 'data')
}
