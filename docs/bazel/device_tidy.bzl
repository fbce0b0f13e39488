"""Checks of device-tidy as Bazel actions: one per source that writes facts, one per check that links them.

docs/scale-out.md of device-tidy describes the use. //tools:device_tidy is expected to run device-tidy.
"""

load("@rules_cc//cc:defs.bzl", "CcInfo", "cc_common")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")

_FactsInfo = provider(fields = {"facts": "depset of facts files of a target and what it links"})

_SOURCES = ("cc", "cpp", "cxx", "c++", "C")

def _compile_flags(target, ctx):
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = target[CcInfo].compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.rule.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = depset(
            ["%s" % define for define in ctx.rule.attr.local_defines],
            transitive = [context.defines],
        ),
    )
    return toolchain, cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = "c++-compile",
        variables = variables,
    )

def _emit(target, ctx):
    own = []
    isExternal = ctx.label.workspace_name != ""  # third-party code is not checked
    if not isExternal and CcInfo in target and hasattr(ctx.rule.attr, "srcs"):
        toolchain, flags = _compile_flags(target, ctx)
        sources = [file for file in ctx.rule.files.srcs if file.extension in _SOURCES]
        headers = [file for file in ctx.rule.files.srcs if file.extension not in _SOURCES]
        for source in sources:
            place = source.short_path.replace("../", "external/")
            facts = ctx.actions.declare_file("%s.device-tidy/%s.facts" % (ctx.label.name, place))
            ctx.actions.run(
                outputs = [facts],
                inputs = depset(
                    [source] + headers,
                    transitive = [target[CcInfo].compilation_context.headers, toolchain.all_files],
                ),
                executable = ctx.executable._tool,
                arguments = [
                    "--quiet",
                    "--no-cache",
                    "--project-root=.",
                    "--emit-facts=" + facts.path,
                    source.path,
                    "--",
                ] + flags,
                mnemonic = "DeviceTidyFacts",
                # Facts name files by absolute paths, which a sandbox would change from action to action.
                execution_requirements = {"no-sandbox": "1", "no-remote": "1"},
            )
            own.append(facts)
    linked = [
        dep[_FactsInfo].facts
        for attribute in ("deps", "implementation_deps")
        for dep in getattr(ctx.rule.attr, attribute, [])
        if _FactsInfo in dep
    ]
    return [_FactsInfo(facts = depset(own, transitive = linked))]

_device_tidy_facts = aspect(
    implementation = _emit,
    attr_aspects = ["deps", "implementation_deps"],
    attrs = {
        "_tool": attr.label(default = "//tools:device_tidy", executable = True, cfg = "exec"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _check(ctx):
    facts = depset(transitive = [each[_FactsInfo].facts for each in ctx.attr.targets])
    report = ctx.actions.declare_file(ctx.label.name + ".txt")
    names = ctx.actions.args()
    names.add("--link")
    names.add("--source-root=.")
    names.add_all(ctx.attr.options)
    names.add_all(facts)
    names.use_param_file("@%s", use_always = True)
    names.set_param_file_format("shell")
    ctx.actions.run_shell(
        outputs = [report],
        inputs = facts,
        tools = [ctx.executable._tool],
        # A finding fails the action, and Bazel prints what it wrote: files of the workspace as a compiler names them.
        command = r"""
            text=$("$1" "$2" 2>&1)
            status=$?
            [ -z "$text" ] || printf '%s\n' "${text//"$PWD/"/}"
            [ $status -ne 0 ] || touch "$3"
            exit $status
        """,
        arguments = [ctx.executable._tool.path, names, report.path],
        mnemonic = "DeviceTidyLink",
        execution_requirements = {"no-sandbox": "1", "no-remote": "1"},
    )
    return [DefaultInfo(files = depset([report]))]

device_tidy_check = rule(
    implementation = _check,
    attrs = {
        "targets": attr.label_list(aspects = [_device_tidy_facts], mandatory = True),
        "options": attr.string_list(),
        "_tool": attr.label(default = "//tools:device_tidy", executable = True, cfg = "exec"),
    },
)
