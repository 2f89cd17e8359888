const browsers: [RegExp, string][] = [
  [/\bEdg(?:e|A|iOS)?\/(\d+)/, 'Edge'],
  [/\bOPR\/(\d+)/, 'Opera'],
  [/\bSamsungBrowser\/(\d+)/, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, 'Firefox'],
  [/\b(?:Headless)?(?:Chrome|CriOS|Chromium)\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+)[\d.]* (?:Mobile\/\S+ )?Safari\//, 'Safari'],
]

const systems: [RegExp, string][] = [
  [/\bWindows\b/, 'Windows'],
  [/\b(?:iPhone|iPad|iPod)\b/, 'iOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** `Firefox 141 on Linux`: what of a user agent is worth reading. */
export function browserText(userAgent: string | null): string {
  if (!userAgent) return 'Unknown browser'
  const browser = browsers.find(([pattern]) => pattern.test(userAgent))
  const version = browser?.[0].exec(userAgent)?.[1]
  const system = systems.find(([pattern]) => pattern.test(userAgent))?.[1]
  const name = browser ? `${browser[1]} ${version}` : 'Other browser'
  return system ? `${name} on ${system}` : name
}

const countries = new Intl.DisplayNames('en', { type: 'region', fallback: 'code' })

/** `Austria` for AT. */
export const countryText = (code: string): string => countries.of(code) ?? code
