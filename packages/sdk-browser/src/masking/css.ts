import { maskEmails } from './text.ts'
import { maskUrl } from './url.ts'

const URL_REFERENCE = /url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')]*))\s*\)/gi
const CONTENT = /\bcontent\s*:\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/gi

/** Styles stay, or the replay would show another page; what they fetch or print is masked. */
export function maskCss(css: string, strict: boolean) {
  const masked = css.replace(URL_REFERENCE, (whole, double, single, bare) => {
    const url: string = double ?? single ?? bare
    if (url[0] === '#') return whole
    return `url("${strict ? 'data:,' : maskUrl(url, 'asset').replace(/"/g, '%22')}")`
  })
  return maskEmails(strict ? masked.replace(CONTENT, 'content:""') : masked)
}
