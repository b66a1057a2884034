/// The one style of all pages.
///
/// Colours have a contrast of 4.5 at least to what they stand on, in light and in dark; a button is 44 px high, and focus
/// is a ring of its own (WCAG 2.2, 1.4.3, 2.4.13, 2.5.5).
enum StyleSheet {
    static let name = "style.css"

    static let text = """
        :root { color-scheme: light dark; --ground: #ffffff; --ink: #1a1a1a; --quiet: #505050; --line: #767676; \
        --button: #0b4f8a; --label: #ffffff; --link: #0b4f8a; }
        @media (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #f1f1f1; --quiet: #b8bcc2; \
        --line: #8a8f98; --button: #9ccaf5; --label: #10151a; --link: #9ccaf5; } }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--ground); color: var(--ink); font: 100%/1.5 system-ui, sans-serif; }
        main { max-width: 34rem; margin: 0 auto; padding: 2rem 1rem; overflow-wrap: anywhere; }
        h1 { font-size: 1.5rem; line-height: 1.5; margin: 0 0 1rem; }
        dl { margin: 0 0 1.5rem; padding: 0.75rem 1rem; border: 1px solid var(--line); border-radius: 0.5rem; }
        dt { color: var(--quiet); }
        dd { margin: 0 0 0.5rem; font-weight: 600; }
        button { min-height: 44px; min-width: 44px; width: 100%; padding: 0.5rem 1rem; border: 1px solid transparent; \
        border-radius: 0.5rem; background: var(--button); color: var(--label); font: inherit; font-weight: 600; cursor: pointer; }
        button.quiet { background: transparent; color: var(--ink); border-color: var(--line); font-weight: 400; }
        a { color: var(--link); display: inline-block; padding: 0.6rem 0; }
        :focus-visible { outline: 3px solid var(--ink); outline-offset: 3px; }

        """
}
