#!/usr/bin/env python3
"""The tasks of clients.py for libraries of Python: sdk.py CLIENT URL. Each task prints its name once it is done: a text that comes in pieces, a tool
that is called and whose result is answered, a second turn. Exit code 1: a task went wrong, with the reason on standard error."""
import asyncio
import json
import sys

PLAIN, AFTER, AGAIN = sys.argv[3:6] # what the model says
KEY = "none"
called = []


def done(task, ok, seen):
    if not ok:
        raise SystemExit(f"{task}: {seen!r}")
    print(task, flush=True)


def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    called.append(city)
    return "21 degrees in " + city


TOOL = {"type": "function", "function": {"name": "get_weather", "description": get_weather.__doc__, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def openai(url):
    from openai import OpenAI
    client = OpenAI(api_key=KEY, base_url=url + "/v1")
    said = [c.choices[0].delta.content or "" for c in client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "Hi"}], stream=True) if c.choices]
    done("stream", "".join(said) == PLAIN and len(said) > 3, said)
    messages = [{"role": "user", "content": "What about Paris?"}]
    with client.chat.completions.stream(model="m", messages=messages, tools=[TOOL]) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    messages += [message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))}]
    said = client.chat.completions.create(model="m", messages=messages, tools=[TOOL]).choices[0].message.content
    done("tool", said == AFTER and called == ["Paris"], said)
    first = client.responses.create(model="m", input="What about Paris?", tools=[dict(TOOL["function"], type="function")])
    call = [x for x in first.output if x.type == "function_call"][0]
    second = client.responses.create(model="m", previous_response_id=first.id, tools=[dict(TOOL["function"], type="function")], input=[
        {"type": "function_call_output", "call_id": call.call_id, "output": "21"}])
    third = client.responses.create(model="m", previous_response_id=second.id, tools=[dict(TOOL["function"], type="function")], input="More?")
    done("second turn", (second.output_text, third.output_text) == (AFTER, AGAIN), (second.output_text, third.output_text))


def anthropic(url):
    from anthropic import Anthropic, beta_tool
    client = Anthropic(api_key=KEY, base_url=url)
    with client.messages.stream(model="m", max_tokens=200, messages=[{"role": "user", "content": "Hi"}]) as stream:
        said = list(stream.text_stream)
    done("stream", "".join(said) == PLAIN and len(said) > 3, said)
    messages = [{"role": "user", "content": "What about Paris?"}]
    runner = client.beta.messages.tool_runner(model="m", max_tokens=200, messages=messages, tools=[beta_tool(get_weather)], stream=True)
    for stream in runner:
        answer = stream.get_final_message()
    said = answer.content[-1].text
    done("tool", said == AFTER and called == ["Paris"], said)
    tool = {"name": "get_weather", "input_schema": TOOL["function"]["parameters"]}
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "More?"}]
    said = client.messages.create(model="m", max_tokens=200, messages=messages, tools=[tool]).content[0].text
    done("second turn", said == AGAIN, said)


def ollama(url):
    from ollama import Client
    client = Client(host=url)
    said = [c.message.content for c in client.chat("m", messages=[{"role": "user", "content": "Hi"}], stream=True)]
    done("stream", "".join(said) == PLAIN and len(said) > 3, said)
    messages = [{"role": "user", "content": "What about Paris?"}]
    for part in client.chat("m", messages=messages, tools=[get_weather], stream=True):
        for call in part.message.tool_calls or []:
            messages += [{"role": "assistant", "content": "", "tool_calls": [call.model_dump()]},
                         {"role": "tool", "tool_name": call.function.name, "content": get_weather(**call.function.arguments)}]
    said = client.chat("m", messages=messages, tools=[get_weather]).message.content
    done("tool", said == AFTER and called == ["Paris"], said)
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "More?"}]
    said = client.chat("m", messages=messages, tools=[get_weather]).message.content
    done("second turn", said == AGAIN, said)


def litellm(url):
    import litellm as lib
    more = {"model": "openai/m", "api_base": url + "/v1", "api_key": KEY}
    said = [c.choices[0].delta.content or "" for c in lib.completion(messages=[{"role": "user", "content": "Hi"}], stream=True, **more)]
    done("stream", "".join(said) == PLAIN and len(said) > 3, said)
    messages = [{"role": "user", "content": "What about Paris?"}]
    whole = lib.stream_chunk_builder(list(lib.completion(messages=messages, tools=[TOOL], stream=True, **more)))
    call = whole.choices[0].message.tool_calls[0]
    messages += [whole.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))}]
    said = lib.completion(messages=messages, tools=[TOOL], **more).choices[0].message.content
    done("tool", said == AFTER and called == ["Paris"], said)
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "More?"}]
    said = lib.completion(messages=messages, tools=[TOOL], **more).choices[0].message.content
    done("second turn", said == AGAIN, said)


def langchain(url):
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI
    for more in ({}, {"use_responses_api": True, "use_previous_response_id": True}):
        called.clear()
        llm = ChatOpenAI(model="m", api_key=KEY, base_url=url + "/v1", **more)
        said = [c.text if isinstance(c.text, str) else c.text() for c in llm.stream("Hi")]
        if not more:
            done("stream", "".join(said) == PLAIN and len(said) > 3, said)
        tools = llm.bind_tools([get_weather])
        messages = [HumanMessage("What about Paris?")]
        whole = None
        for part in tools.stream(messages):
            whole = part if whole is None else whole + part
        messages += [whole, ToolMessage(get_weather(**whole.tool_calls[0]["args"]), tool_call_id=whole.tool_calls[0]["id"])]
        answer = tools.invoke(messages)
        if more:
            messages += [answer, HumanMessage("More?")]
            said = tools.invoke(messages).text
            done("second turn", said == AGAIN and answer.text == AFTER, said)
        else:
            done("tool", answer.text == AFTER and called == ["Paris"], answer)


def pydantic_ai(url):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url + "/v1", api_key=KEY))

    async def run():
        async with Agent(model).run_stream("Hi") as result:
            said = [x async for x in result.stream_text(delta=True, debounce_by=None)]
        done("stream", "".join(said) == PLAIN and len(said) > 3, said)
        agent = Agent(model, tools=[get_weather])
        first = await agent.run("What about Paris?")
        done("tool", first.output == AFTER and called == ["Paris"], first.output)
        second = await agent.run("More?", message_history=first.all_messages())
        done("second turn", second.output == AGAIN, second.output)
    asyncio.run(run())


def openai_agents(url):
    from agents import Agent, OpenAIResponsesModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("m", openai_client=AsyncOpenAI(base_url=url + "/v1", api_key=KEY))

    async def run():
        result = Runner.run_streamed(Agent(name="a", model=model), "Hi")
        said = [e.data.delta async for e in result.stream_events() if e.type == "raw_response_event" and e.data.type == "response.output_text.delta"]
        done("stream", "".join(said) == PLAIN and len(said) > 3, said)
        agent, session = Agent(name="a", model=model, tools=[function_tool(get_weather)]), SQLiteSession("s")
        first = await Runner.run(agent, "What about Paris?", session=session)
        done("tool", first.final_output == AFTER and called == ["Paris"], first.final_output)
        second = await Runner.run(agent, "More?", session=session)
        done("second turn", second.final_output == AGAIN, second.final_output)
    asyncio.run(run())


def instructor(url):
    import instructor as lib
    from openai import OpenAI
    from pydantic import BaseModel

    class get_weather(BaseModel): # noqa: N801, the tool's name
        city: str

    client = lib.from_openai(OpenAI(base_url=url + "/v1", api_key=KEY), mode=lib.Mode.TOOLS)
    messages = [{"role": "user", "content": "What about Paris?"}]
    parts = [p.city for p in client.chat.completions.create_partial(model="m", messages=messages, response_model=get_weather)]
    done("stream", parts[-1] == "Paris", parts)
    got, raw = client.chat.completions.create_with_completion(model="m", messages=messages, response_model=get_weather)
    done("tool", got.city == "Paris", got)
    schema = lib.from_openai(OpenAI(base_url=url + "/v1", api_key=KEY), mode=lib.Mode.JSON_SCHEMA)
    messages += [{"role": "assistant", "content": "Paris"}, {"role": "user", "content": "More?"}]
    got = schema.chat.completions.create(model="m", messages=messages, response_model=get_weather)
    done("second turn", got.city == "Oslo", got)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
